// How the rows of a matrix are cut into sub-vectors and which of them share a pool: what product
// quantisation and slim's mappings agree on. Pools are as in CodedTable: one for all positions, or
// one for each.
#ifndef KINGLET_CONVERTERS_PASSES_SUB_VECTORS_H_
#define KINGLET_CONVERTERS_PASSES_SUB_VECTORS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "converters/passes/k_means.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Disjoint pools for so many positions with so many sub-vectors in all (Slim Embedding's M and K),
// of sizes that differ by at most one, the larger ones first.
// REQUIRES: positions >= 1; sub_vectors < 2^32.
std::vector<uint32_t> EvenPools(uint64_t sub_vectors, uint64_t positions);

// Whether a matrix of this shape can be made of such sub-vectors. `what` begins the refusal.
// Errors: KINGLET_INVALID_ARGUMENT for an empty matrix or one above
// the limits of format/limits.h, positions that do not divide its columns,
// pools that are neither one nor one for each position, and a pool that is empty or has more
// sub-vectors than its positions have rows to take them.
Status CheckPools(const char* what, const Shape& shape, uint64_t positions,
                  std::span<const uint32_t> pools);

// How many sub-vectors of the matrix draw from one pool: rows, or rows * positions from the only
// pool. REQUIRES: positions >= 1.
uint64_t DrawsFromPool(const Shape& shape, uint64_t positions, uint64_t pools);

// Those sub-vectors, in order of rows and then positions; they lie in `values`.
// REQUIRES: values [shape]; positions divide its columns; pool < pools.
VectorsView SubVectorsOfPool(std::span<const float> values, const Shape& shape, uint64_t positions,
                             uint64_t pools, uint64_t pool);

// The pool that a position draws from.
inline uint64_t PoolOf(uint64_t position, uint64_t pools) { return pools == 1 ? 0 : position; }

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SUB_VECTORS_H_
