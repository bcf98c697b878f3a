// The embedding's block, and the quantiser of activations that all blocks share (format/blocks.h).
#ifndef KINGLET_FORMAT_EMBEDDING_BLOCKS_H_
#define KINGLET_FORMAT_EMBEDDING_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/define_unit.h"
#include "format/encoding.h"

namespace kinglet {

// y = round_half_even(clamp(x, -max_abs, max_abs) / scale) * scale. Both values are finite and > 0
// (docs/NUMERICS.md, "Activations"). Origin: distiller's symmetric linear quantiser as MicroNet
// uses it.
struct ActivationQuantiser {
  float max_abs;
  float scale;
  bool operator==(const ActivationQuantiser&) const = default;
};

// A convolution over a word's bytes, without padding, stride 1.
struct ByteFilter {
  uint32_t width;   // bytes that a window has
  TensorId weight;  // [channels, width * c], byte by byte; not coded
  TensorId bias;    // [channels]
};

// A character CNN (Kim et al. 2016; the character inputs of Baevski & Auli 2019, as fairseq's
// CharacterTokenEmbedder): how a word's bytes become a row. The word's first `longest` bytes,
// filled up to `longest` with paddings, each have a vector of c elements in the bin's table. An
// element of the row is the largest sum of a channel over all windows, and at least 0; the
// channels of the filters come in their order.
struct SpellingRows {
  uint32_t longest;
  std::vector<ByteFilter> filters;  // at least one
};
// Rows of a table of bytes: the padding's, then those of the bytes 0 to 255.
inline constexpr uint32_t kSpellingSymbols = 257;
inline constexpr uint32_t kLongestSpelling = 1024;
inline constexpr size_t kMaxFilters = 64;

// The embedding rows of words [first, first + size). A projection maps a row of the table to the
// bin's width, which is the embedding's width or, where a DeFINE unit follows, its map_width.
struct EmbeddingBin {
  uint32_t first;
  uint32_t size;
  TensorId table;                      // [size, e]; with `spelling` [kSpellingSymbols, c]
  std::optional<TensorId> projection;  // [bin's width, e]; absent: e is the bin's width
  // How many tokens of a typical text are in the bin, so that benchmarks can generate realistic
  // ids; 0 in every bin: not known. Affects no result.
  uint64_t tokens = 0;
  double scale = 1;  // multiplies the (projected) row
  // Rows are computed from the words' bytes. Only the last bin may have it, and has a unit then.
  std::optional<SpellingRows> spelling = {};
};

// The tensors of one layer of a DeFINE unit. ShapesOf(layer) gives which are present, and their
// shapes.
struct DefineTensors {
  TensorId weight;  // not coded
  std::optional<TensorId> bias, norm_gain, norm_offset;
};

// A DeFINE unit, or the layers after a character CNN, that the file stores instead of a table of
// the unit's outputs: a stream computes the output for a word when it first needs it, and keeps the
// output in a cache of its own.
struct KeptDefineUnit {
  // The bins [first_bin, first_bin + bin_count) are the unit's Map layer. Several units have no bin
  // in common.
  uint32_t first_bin, bin_count;
  DefineUnit unit;
  std::vector<DefineTensors> tensors;  // of the unit's layers
  uint32_t cache_rows;                 // capacity of a stream's cache in rows; at least 1
};

// Adaptive input representations (Baevski & Auli 2019); with one bin an ordinary embedding, with a
// projection a low-rank one. Bins are adjacent, start at word 0 and cover the vocabulary.
struct AdaptiveEmbedding {
  std::string name;
  uint32_t width;  // of the bins' rows, or of the unit's output
  double scale;    // multiplies the row, or the unit's output; sqrt(width) in most Transformers
  std::vector<EmbeddingBin> bins;
  std::vector<KeptDefineUnit> units = {};  // in the order of their bins
};

// Of an embedding's units, which have first_bin and bin_count: the one that bin `bin` is a part of;
// nullptr if the bin's rows are the embedding's.
template <class Unit>
const Unit* UnitOf(const std::vector<Unit>& units, size_t bin) {
  for (const Unit& unit : units) {
    if (bin >= unit.first_bin && bin - unit.first_bin < unit.bin_count) return &unit;
  }
  return nullptr;
}

// What the names of a unit's parts begin with, after the embedding's name.
inline std::string UnitName(size_t units, size_t index) {
  return units == 1 ? ".unit" : ".unit." + std::to_string(index);
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_EMBEDDING_BLOCKS_H_
