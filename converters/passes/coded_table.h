// A table whose rows are made of shared sub-vectors: the common form of DPQ, product quantisation,
// KD codes, slim embeddings, hashing and summed codes (Shu & Nakayama). Passes make coded tables;
// the writer packs them (format/encoding.h).
#ifndef KINGLET_CONVERTERS_PASSES_CODED_TABLE_H_
#define KINGLET_CONVERTERS_PASSES_CODED_TABLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Row w combines the sub-vectors codebook[first_j + codes[w, j]], j < positions, where first_j is
// the start of position j's pool.
struct CodedTable {
  Combine combine = Combine::kConcatenate;
  uint64_t rows = 0;
  uint64_t positions = 0;  // D: sub-vectors a row
  uint64_t length = 0;     // of a sub-vector
  // Sizes of the pools, adjacent in the codebook: one size if all positions choose from the same
  // pool, otherwise one for each position.
  std::vector<uint32_t> pools;
  std::vector<float> codebook;  // [sum of pools, length]
  std::vector<uint32_t> codes;  // [rows, positions], each less than its position's pool
};

inline uint64_t Cols(const CodedTable& table) {
  return table.combine == Combine::kConcatenate ? table.positions * table.length : table.length;
}

// The table in the form of a draft, and its codebook, which is a tensor of its own.
struct DraftTable {
  Coded table;  // the caller sets table.scheme.codebook, the codebook's id
  Shape codebook_shape;
  DenseF32 codebook;
};
// With a seed, only the seed is stored: the table's codes must be the codes that the seed gives
// (format/hashed_codes.h).
DraftTable ForDraft(CodedTable table, std::optional<uint64_t> seed);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CODED_TABLE_H_
