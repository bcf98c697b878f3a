// A DeFINE input as an equivalent table: the unit's output is a function of the word alone, so
// inference needs only its value for every word (Mehta et al. 2020, section 3.3).
#ifndef KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_TABLE_H_
#define KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converters/passes/define/define_weights.h"
#include "kinglet/status.h"

namespace kinglet {

// Consecutive words of Map.
struct DefineBand {
  uint64_t words = 0;
  uint64_t width = 0;             // of a word's vector, at most kLargestDefineWidth
  double scale = 1;               // what the vector is multiplied by before the projection
  std::vector<float> table;       // [words, width]
  std::vector<float> projection;  // [n, width], as torch.nn.Linear's; empty: width is n
};
// Map: one band without a projection is the full one, with a projection the projective, several
// bands the adaptive one. Word ids are counted through the bands.
using DefineMap = std::vector<DefineBand>;

uint64_t Words(const DefineMap& map);

// Entries of the largest table that is computed.
inline constexpr uint64_t kLargestDefineTable = uint64_t{1} << 32;

// The table [V, m]: every word's vector in double precision, rounded once to float32. The bits do
// not depend on the number of threads. Memory in addition to the table: for each thread a batch of
// kBatchWords words at the unit's widths. Errors: as CheckUnit and CheckWeights;
// KINGLET_INVALID_CHECKPOINT for a map that does not fit the unit or a table that is too large;
// KINGLET_NOT_FINITE, naming the word, for a vector that overflows float32. REQUIRES: threads >= 1.
Result<std::vector<float>> DefineTable(const DefineMap& map, const DefineUnit& unit,
                                       std::span<const DefineWeights> weights, size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_TABLE_H_
