// A table whose rows are made of shared sub-vectors: what DPQ, product quantisation, KD codes, slim
// embeddings, hashing and Shu & Nakayama's codes have in common. Passes make them; the writer packs
// them (format/encoding.h).
#ifndef KINGLET_CONVERTERS_PASSES_CODED_TABLE_H_
#define KINGLET_CONVERTERS_PASSES_CODED_TABLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Row w = combine over j < positions of codebook[first_j + codes[w, j]], first_j being where the
// pool of position j begins.
struct CodedTable {
  Combine combine = Combine::kConcatenate;
  uint64_t rows = 0;
  uint64_t positions = 0;  // D: sub-vectors a row
  uint64_t length = 0;     // of a sub-vector
  // Sub-vectors that a position may choose from. One: all positions choose from the same. Otherwise
  // one for each position, adjacent in the codebook.
  std::vector<uint32_t> pools;
  std::vector<float> codebook;  // [sum of pools, length]
  std::vector<uint32_t> codes;  // [rows, positions], each less than its position's pool
};

inline uint64_t Cols(const CodedTable& table) {
  return table.combine == Combine::kConcatenate ? table.positions * table.length : table.length;
}

// The table as a draft holds it, and its codebook, a tensor of its own.
struct DraftTable {
  Coded table;  // its scheme's codebook is for the caller to set
  Shape codebook_shape;
  DenseF32 codebook;
};
// With a seed the codes are those that it computes (format/hashed_codes.h), and are not kept.
DraftTable ForDraft(CodedTable table, std::optional<uint64_t> seed);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CODED_TABLE_H_
