// Slim embeddings (Li et al., AAAI 2018, "Slim Embedding Layers for Recurrent Neural Language
// Models", section 3): mappings from the positions of rows to shared sub-vectors that are chosen at
// random or by hashing, before the values are known, and the sub-vectors that fit a matrix best
// under a given mapping. ProductQuantise (product_quantise.h) chooses mappings by the values.
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

// The paper's random mapping, [rows, positions]. For each pool in turn, a list with one entry for
// each draw from the pool (in order of rows, then positions) is filled with 0, 1, ..., pool - 1, 0,
// 1, ..., so that all sub-vectors occur equally often, give or take one. Then it is shuffled: for i
// = entries - 1 down to 1, entry i is swapped with entry random.Below(i + 1), where `random` is one
// SplitMix64(seed) for all pools. The paper does not name its generator, so a checkpoint must
// contain its mapping.
// Errors: as CheckPools; KINGLET_INVALID_ARGUMENT for 2^32 draws or more from one pool.
Result<std::vector<uint32_t>> ShuffledCodes(const Shape& shape, uint64_t positions,
                                            std::span<const uint32_t> pools, uint64_t seed);

// The mapping that HashedCode (format/hashed_codes.h) computes, [rows, positions]. With as many
// positions as columns it is that of HashedNets (HashNet; Chen et al. 2015). Errors: as CheckPools.
Result<std::vector<uint32_t>> HashedCodes(const Shape& shape, uint64_t positions,
                                          std::span<const uint32_t> pools, uint64_t seed);

// The table with these codes that has the least squared error: each sub-vector is the mean of the
// parts of rows that draw it, or 0 if none does. Errors: as CheckPools; KINGLET_INVALID_ARGUMENT
// for a wrong number of values or codes, a code that is not in its pool, or no threads;
// KINGLET_NOT_FINITE for infinite or NaN values.
Result<CodedTable> FitSubVectors(std::span<const float> values, const Shape& shape,
                                 uint64_t positions, std::vector<uint32_t> pools,
                                 std::vector<uint32_t> codes, size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SLIM_MAPPING_H_
