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

// The embedding rows of words [first, first + size). A projection maps a row of the table to the
// bin's width, which is the embedding's width or, where a DeFINE unit follows, its map_width.
struct EmbeddingBin {
  uint32_t first;
  uint32_t size;
  TensorId table;                      // [size, e]
  std::optional<TensorId> projection;  // [bin's width, e]; absent: e is the bin's width
  // How many tokens of a typical text are in the bin, so that benchmarks can generate realistic
  // ids; 0 in every bin: not known. Affects no result.
  uint64_t tokens = 0;
  double scale = 1;  // multiplies the (projected) row
};

// The tensors of one layer of a DeFINE unit. ShapesOf(layer) gives which are present, and their
// shapes.
struct DefineTensors {
  TensorId weight;  // not coded
  std::optional<TensorId> bias, norm_gain, norm_offset;
};

// A DeFINE unit that the file stores instead of a table of the unit's outputs: a stream computes
// the output for a word when it first needs it, and keeps the output in a cache of its own.
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
