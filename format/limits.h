// Bounds that every model file keeps. They are far above any published compressed language model
// and let readers allocate and multiply without overflow.
#ifndef KINGLET_FORMAT_LIMITS_H_
#define KINGLET_FORMAT_LIMITS_H_

#include <cstdint>

namespace kinglet {

inline constexpr uint64_t kMaxDimension = (uint64_t{1} << 31) - 1;
inline constexpr uint64_t kMaxParameters = uint64_t{1} << 40;  // entries of all tensors together
// Of a decoder: widths, heads, window. Products of three stay below 2^64, and 64-bit integer sums
// of 16-bit weights and 21-bit activations over one of them below 2^57.
inline constexpr uint64_t kMaxExtent = uint64_t{1} << 20;
// Radians a token of a sinusoidal position; above pi, half a turn, they only repeat. Angles stay
// below 2^23.
inline constexpr float kMaxFrequency = 4;
// Multiplications that make the rows of relative positions when a model is loaded, all layers
// together, rows counting as 64 wide at least: 24 layers of width 1,536 with 4,096 slots take less.
inline constexpr uint64_t kMaxRelativeProducts = uint64_t{1} << 38;
inline constexpr uint64_t kMaxNameBytes = 1024;
inline constexpr uint64_t kMaxLayers = 4096;
// Bins of an embedding; a softmax has at most one tail less, so that its clusters are as many.
inline constexpr uint64_t kMaxBins = 4096;
// Sub-vectors of a coded row; one for each column (HashedNets) of the widest published table is
// 2,048. Readers keep a few numbers for each.
inline constexpr uint64_t kMaxPositions = 8192;
// Codes of a table that are computed: they take no bytes, so nothing else bounds the work.
inline constexpr uint64_t kMaxHashedCodes = uint64_t{1} << 32;
inline constexpr uint32_t kMaxCacheCapacity = uint32_t{1} << 20;
// Levels of an activation quantiser on one side of zero.
inline constexpr double kMaxQuantiserLevels = 1 << 20;

}  // namespace kinglet

#endif  // KINGLET_FORMAT_LIMITS_H_
