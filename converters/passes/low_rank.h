// A matrix as the product of two thin ones: low-rank factorisation by truncated singular value
// decomposition (SVD), for embeddings with a projection (EmbeddingBin).
#ifndef KINGLET_CONVERTERS_PASSES_LOW_RANK_H_
#define KINGLET_CONVERTERS_PASSES_LOW_RANK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Row w of the matrix is about projection * row w of the table.
struct LowRank {
  uint64_t rank = 0;
  std::vector<float> table;       // [rows, rank]: left singular vectors times singular values
  std::vector<float> projection;  // [cols, rank]: right singular vectors, so orthonormal columns
  // All min(rows, cols) of the matrix, falling.
  std::vector<double> singular_values;
};

// More columns would take hours.
inline constexpr uint64_t kMaxLowRankColumns = 4096;

// The best approximation of rank `rank` in the Frobenius norm (Eckart & Young 1936). The right
// singular vectors are the eigenvectors of the Gram matrix [cols, cols], summed and decomposed in
// double. The Gram matrix has the squared condition number: a singular value has a relative error
// of about 1e-16 * (largest / value)^2. Values below about 1e-8 of the largest, less than float32
// entries resolve, and their vectors are therefore not accurate. Signs: in each column of the
// projection the entry of the largest magnitude is above 0.
// Cost: rows * cols^2 / 2 multiply-adds for the Gram matrix, about 6 * cols^3 for its
// decomposition, which uses one thread. The result is the same for any number of threads.
// Errors: KINGLET_INVALID_ARGUMENT for an empty matrix, more columns than kMaxLowRankColumns,
// values that do not fill the shape, a rank that is not in 1..min(rows, cols), or no threads;
// KINGLET_NOT_FINITE for infinite or NaN values, and where the table overflows float32.
Result<LowRank> FactoriseToRank(std::span<const float> values, const Shape& shape, uint64_t rank,
                                size_t threads);

// The smallest rank, at least 1, whose relative error |approximation - matrix| / |matrix|
// (Frobenius), computed from the singular values, is at most `error`. An error below about 1e-8 is
// not resolved: all singular values that are not computed as 0 are then kept. Errors: those of
// FactoriseToRank;
// KINGLET_INVALID_ARGUMENT for an error that is not in [0, 1].
Result<LowRank> FactoriseToError(std::span<const float> values, const Shape& shape, double error,
                                 size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_LOW_RANK_H_
