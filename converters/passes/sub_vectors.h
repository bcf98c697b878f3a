// How the rows of a matrix are split into sub-vectors, and which sub-vectors share a pool: the
// common part of product quantisation and slim embeddings. Pools are as in CodedTable: one that all
// positions share, or one for each position.
#ifndef KINGLET_CONVERTERS_PASSES_SUB_VECTORS_H_
#define KINGLET_CONVERTERS_PASSES_SUB_VECTORS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "converters/passes/k_means.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Sizes of one pool per position, `sub_vectors` in all (M sub-vectors and K positions in the slim
// embedding paper). Sizes differ by at most one, the larger ones first.
// REQUIRES: positions >= 1; sub_vectors < 2^32.
std::vector<uint32_t> EvenPools(uint64_t sub_vectors, uint64_t positions);

// Checks that a matrix of this shape can be made of sub-vectors of these pools. `what` begins the
// message.
// Errors: KINGLET_INVALID_ARGUMENT for a matrix that is empty or above the limits of
// format/limits.h, positions that do not divide its columns, a number of pools that is neither 1
// nor the number of positions, and a pool that is empty or has more sub-vectors than draws.
Status CheckPools(const char* what, const Shape& shape, uint64_t positions,
                  std::span<const uint32_t> pools);

// How many sub-vectors of the matrix draw from one pool: `rows` from a position's own pool, rows *
// positions from a shared one. REQUIRES: positions >= 1.
uint64_t DrawsFromPool(const Shape& shape, uint64_t positions, uint64_t pools);

// The sub-vectors that draw from one pool, in order of rows and then positions, as a view into
// `values`.
// REQUIRES: values [shape]; positions divide its columns; pool < pools.
VectorsView SubVectorsOfPool(std::span<const float> values, const Shape& shape, uint64_t positions,
                             uint64_t pools, uint64_t pool);

// Index of the pool that a position draws from.
inline uint64_t PoolOf(uint64_t position, uint64_t pools) { return pools == 1 ? 0 : position; }

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SUB_VECTORS_H_
