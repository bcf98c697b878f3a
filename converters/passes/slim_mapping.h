// Slim embeddings' own mappings from positions of rows to shared sub-vectors, chosen before the
// values are known (Li et al. 2018, "Slim Embedding Layers for Recurrent Neural Language Models",
// section 3), and the best sub-vectors for a matrix under such a mapping. Mappings chosen by the
// values are ProductQuantise's.
#ifndef KINGLET_CONVERTERS_PASSES_SLIM_MAPPING_H_
#define KINGLET_CONVERTERS_PASSES_SLIM_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converters/passes/coded_table.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// The paper's mapping, [rows, positions]. For each pool in turn a list with an entry for each draw
// from it (in order of rows, then positions) is filled 0, 1, ..., pool - 1, 0, 1, ... so that no
// sub-vector occurs more than once more than another, and shuffled: for i = entries - 1 down to 1,
// entry i changes places with entry Below(i + 1) of one SplitMix64(seed) that all pools share. The
// paper fixes no generator: mappings of checkpoints must come with them.
// Errors: as CheckPools; KINGLET_INVALID_ARGUMENT for 2^32 draws or more from one pool.
Result<std::vector<uint32_t>> ShuffledCodes(const Shape& shape, uint64_t positions,
                                            std::span<const uint32_t> pools, uint64_t seed);

// The mapping that HashedCode computes, [rows, positions]. With as many positions as columns it is
// that of HashedNets (Chen et al. 2015). Errors: as CheckPools.
Result<std::vector<uint32_t>> HashedCodes(const Shape& shape, uint64_t positions,
                                          std::span<const uint32_t> pools, uint64_t seed);

// The table that is nearest to the values, in squared error, among those with these codes: each
// sub-vector is the mean of the parts of rows that draw it, 0 if none does. Takes the codes over.
// Errors: as CheckPools; KINGLET_INVALID_ARGUMENT for values or codes of another number, a code
// that is not in its pool, or no threads; KINGLET_NOT_FINITE for infinite or NaN values.
Result<CodedTable> FitSubVectors(std::span<const float> values, const Shape& shape,
                                 uint64_t positions, std::vector<uint32_t> pools,
                                 std::vector<uint32_t> codes, size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SLIM_MAPPING_H_
