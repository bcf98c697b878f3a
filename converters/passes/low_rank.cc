#include "converters/passes/low_rank.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "converters/passes/symmetric_eigen.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr char kCannotFactorise[] = "cannot factorise";

// Rows of the matrix that are widened to double together.
constexpr uint64_t kWidenedRows = 256;
// Rows of the Gram matrix that a thread computes together.
constexpr uint64_t kGramRows = 64;
// Products that are summed before the sum goes to memory.
constexpr uint64_t kSummedTogether = 4;

Status RefuseLowRank(const std::string& where, const std::string& expected,
                     const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, kCannotFactorise, where, expected, found);
}

Status NotFinite(uint64_t entry, float value, const std::string& of) {
  return Status::Refusal(KINGLET_NOT_FINITE, kCannotFactorise,
                         "entry " + std::to_string(entry) + of, "a finite number",
                         std::to_string(value));
}

Status CheckMatrix(std::span<const float> values, const Shape& shape, size_t threads) {
  if (shape.size() != 2 || Rows(shape) == 0 || Cols(shape) == 0 ||
      Cols(shape) > kMaxLowRankColumns) {
    return RefuseLowRank("shape",
                         "a matrix of 1 to " + std::to_string(kMaxLowRankColumns) + " columns",
                         ShapeText(shape));
  }
  if (values.size() % Cols(shape) != 0 || values.size() / Cols(shape) != Rows(shape)) {
    return RefuseLowRank("values", ShapeText(shape) + " entries", std::to_string(values.size()));
  }
  if (threads == 0) return RefuseLowRank("threads", "at least 1", "0");
  for (uint64_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return NotFinite(i, values[i], "");
  }
  return {};
}

// out[j] += sum over k < terms of factor(k) * row(k)[j], for j < size. Adds four products at a
// time, so that `out` goes through memory once for all four. The order of the sums is fixed.
template <class Factor, class Row>
void AddProducts(uint64_t terms, const Factor& factor, const Row& row, uint64_t size, double* out) {
  uint64_t k = 0;
  for (; k + kSummedTogether <= terms; k += kSummedTogether) {
    const double a = factor(k), b = factor(k + 1), c = factor(k + 2), d = factor(k + 3);
    const double *x = row(k), *y = row(k + 1), *z = row(k + 2), *w = row(k + 3);
    for (uint64_t j = 0; j < size; ++j) out[j] += (a * x[j] + b * y[j]) + (c * z[j] + d * w[j]);
  }
  for (; k < terms; ++k) {
    const double a = factor(k);
    const double* x = row(k);
    for (uint64_t j = 0; j < size; ++j) out[j] += a * x[j];
  }
}

// The upper triangle of values^T values, [cols, cols]. Threads take tiles of its rows one by one;
// each tile sums the matrix's rows in order, so the sums do not depend on the number of threads.
std::vector<double> GramOf(std::span<const float> values, uint64_t rows, uint64_t cols,
                           size_t threads) {
  std::vector<double> gram(cols * cols);
  RunShares(threads, [&](size_t share) {
    std::vector<double> widened(kWidenedRows * cols);
    for (uint64_t first = kGramRows * share; first < cols; first += kGramRows * threads) {
      const uint64_t end = std::min(cols, first + kGramRows);
      for (uint64_t top = 0; top < rows; top += kWidenedRows) {
        const uint64_t height = std::min(kWidenedRows, rows - top);
        for (uint64_t row = 0; row < height; ++row) {
          const float* from = values.data() + (top + row) * cols;
          std::copy(from + first, from + cols, widened.data() + row * cols + first);
        }
        for (uint64_t col = first; col < end; ++col) {
          const auto entry = [&](uint64_t row) { return widened[row * cols + col]; };
          const auto right = [&](uint64_t row) { return widened.data() + row * cols + col; };
          AddProducts(height, entry, right, cols - col, gram.data() + col * cols + col);
        }
      }
    }
  });
  return gram;
}

struct RightFactors {
  std::vector<double> singular_values;  // [cols], falling
  std::vector<double> vectors;          // [cols, cols]: row i is the right singular vector i
};

Result<RightFactors> DecomposeGram(std::vector<double> gram, uint64_t cols) {
  KINGLET_ASSIGN_OR_RETURN(SymmetricEigen found, DecomposeSymmetric(std::move(gram), cols));
  for (uint64_t i = 0; i < cols; ++i) {
    const std::span<double> vector = std::span(found.vectors).subspan(i * cols, cols);
    const double largest = *std::max_element(
        vector.begin(), vector.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    if (largest > 0) continue;
    for (double& entry : vector) entry = -entry;
  }
  for (double& value : found.values) value = std::sqrt(std::max(value, 0.0));
  return RightFactors{std::move(found.values), std::move(found.vectors)};
}

Result<LowRank> Truncate(std::span<const float> values, uint64_t rows, uint64_t cols,
                         RightFactors factors, uint64_t rank, size_t threads) {
  std::vector<double> projection(cols * rank);
  for (uint64_t i = 0; i < rank; ++i) {
    for (uint64_t col = 0; col < cols; ++col) {
      projection[col * rank + i] = factors.vectors[i * cols + col];
    }
  }
  LowRank result;
  result.rank = rank;
  result.projection.assign(projection.begin(), projection.end());
  result.table.resize(rows * rank);
  RunRanges(rows, threads, [&](uint64_t first, uint64_t end) {
    std::vector<double> sums(rank);
    for (uint64_t row = first; row < end; ++row) {
      std::fill(sums.begin(), sums.end(), 0.0);
      AddProducts(
          cols, [&](uint64_t col) { return double{values[row * cols + col]}; },
          [&](uint64_t col) { return projection.data() + col * rank; }, rank, sums.data());
      std::copy(sums.begin(), sums.end(),
                result.table.begin() + static_cast<ptrdiff_t>(row * rank));
    }
  });
  for (uint64_t i = 0; i < result.table.size(); ++i) {
    if (!std::isfinite(result.table[i])) return NotFinite(i, result.table[i], " of the table");
  }
  result.singular_values = std::move(factors.singular_values);
  result.singular_values.resize(std::min(rows, cols));
  return result;
}

// The smallest rank whose omitted singular values are at most `error` of the norm.
uint64_t RankForError(const std::vector<double>& singular_values, uint64_t max_rank, double error) {
  double all = 0, excluded = 0;
  for (const double value : singular_values) all += value * value;
  const double allowed = error * error * all;
  uint64_t rank = max_rank;
  while (rank > 1) {
    const double value = singular_values[rank - 1];
    excluded += value * value;
    if (excluded > allowed) break;
    --rank;
  }
  return rank;
}

}  // namespace

Result<LowRank> FactoriseToRank(std::span<const float> values, const Shape& shape, uint64_t rank,
                                size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckMatrix(values, shape, threads));
  const uint64_t rows = Rows(shape), cols = Cols(shape), max_rank = std::min(rows, cols);
  if (rank == 0 || rank > max_rank) {
    return RefuseLowRank("rank", "1 to " + std::to_string(max_rank), std::to_string(rank));
  }
  KINGLET_ASSIGN_OR_RETURN(RightFactors factors,
                           DecomposeGram(GramOf(values, rows, cols, threads), cols));
  return Truncate(values, rows, cols, std::move(factors), rank, threads);
}

Result<LowRank> FactoriseToError(std::span<const float> values, const Shape& shape, double error,
                                 size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckMatrix(values, shape, threads));
  if (!(error >= 0 && error <= 1)) {
    return RefuseLowRank("relative error", "a number in [0, 1]", std::to_string(error));
  }
  const uint64_t rows = Rows(shape), cols = Cols(shape);
  KINGLET_ASSIGN_OR_RETURN(RightFactors factors,
                           DecomposeGram(GramOf(values, rows, cols, threads), cols));
  const uint64_t rank = RankForError(factors.singular_values, std::min(rows, cols), error);
  return Truncate(values, rows, cols, std::move(factors), rank, threads);
}

}  // namespace kinglet
