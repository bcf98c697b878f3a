// Bounds of every model file, far above any published compressed language model and small enough
// that readers can allocate and multiply without overflow.
#ifndef KINGLET_FORMAT_LIMITS_H_
#define KINGLET_FORMAT_LIMITS_H_

#include <cstdint>

namespace kinglet {

inline constexpr uint64_t kMaxDimension = (uint64_t{1} << 31) - 1;
inline constexpr uint64_t kMaxParameters = uint64_t{1} << 40;  // entries of all tensors together
// Widths, heads and window of a decoder. Products of three extents stay below 2^64, and a 64-bit
// sum of kMaxExtent products of 16-bit weights and 21-bit activations stays below 2^57.
inline constexpr uint64_t kMaxExtent = uint64_t{1} << 20;
// Frequency of a sinusoidal position in radians per token. Frequencies above pi repeat lower ones.
// Angles stay below 2^23.
inline constexpr float kMaxFrequency = 4;
// Limits of the multiplications that opening a model with relative positions takes: rows of
// distances times the width times the columns of all heads, both counted as 64 where they are less,
// in all layers. kRelativeProducts for every file, kRelativeProductsPerByte more for each byte of
// its tensors, and at most kMaxRelativeProducts. About 2^34 take a second. 24 layers of width 1,536
// with 4,096 slots stay below the limits at 2 bits.
inline constexpr uint64_t kRelativeProducts = uint64_t{1} << 30;
inline constexpr uint64_t kRelativeProductsPerByte = uint64_t{1} << 12;
inline constexpr uint64_t kMaxRelativeProducts = uint64_t{1} << 38;
inline constexpr uint64_t kLeastRelativeExtent = 64;
inline constexpr uint64_t kMaxNameBytes = 1024;
inline constexpr uint64_t kMaxLayers = 4096;
// Bins of an embedding, clusters of a softmax (its head and its tails).
inline constexpr uint64_t kMaxBins = 4096;
// Sub-vectors of a coded row. HashNets have one per column; the widest published table has 2,048.
// Readers allocate a few values per position.
inline constexpr uint64_t kMaxPositions = 8192;
// Computed codes of a table, and its rows. Computed codes take no bytes, so the file's size does
// not bound the work. A call that multiplies with a table of computed codes can be cancelled
// between parts of the table, and reading that many rows once takes a tenth of a second.
inline constexpr uint64_t kMaxHashedCodes = uint64_t{1} << 32;
inline constexpr uint64_t kMaxHashedRows = uint64_t{1} << 24;
inline constexpr uint32_t kMaxCacheCapacity = uint32_t{1} << 20;
// Levels of an activation quantiser on one side of zero.
inline constexpr double kMaxQuantiserLevels = 1 << 20;

}  // namespace kinglet

#endif  // KINGLET_FORMAT_LIMITS_H_
