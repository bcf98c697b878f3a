#include "converters/passes/low_rank.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr char kCannotFactorise[] = "cannot factorise";

using Matrix = Eigen::MatrixXd;
using FloatRows =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

// Rows that are widened to double together.
constexpr Eigen::Index kRowBlock = 256;
// Columns of the Gram matrix that a thread computes together.
constexpr Eigen::Index kColumnBlock = 64;

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

// RunShares for work that allocates, as Eigen's products do.
void RunAllocatingShares(size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<bool> out_of_memory = false;
  RunShares(threads, [&](size_t share) {
    try {
      work(share);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  });
  if (out_of_memory) throw std::bad_alloc();
}

// The lower triangle of values^T values. Each block of columns is one thread's and adds up blocks
// of rows in order.
Matrix GramOf(const FloatRows& values, size_t threads) {
  const Eigen::Index cols = values.cols();
  Matrix gram = Matrix::Zero(cols, cols);
  RunAllocatingShares(threads, [&](size_t share) {
    const auto step = kColumnBlock * static_cast<Eigen::Index>(threads);
    for (Eigen::Index column = kColumnBlock * static_cast<Eigen::Index>(share); column < cols;
         column += step) {
      const Eigen::Index width = std::min(kColumnBlock, cols - column), below = cols - column;
      for (Eigen::Index row = 0; row < values.rows(); row += kRowBlock) {
        const Eigen::Index height = std::min(kRowBlock, values.rows() - row);
        const Matrix block = values.block(row, column, height, below).cast<double>();
        gram.block(column, column, below, width).noalias() +=
            block.transpose() * block.leftCols(width);
      }
    }
  });
  return gram;
}

// Singular values, falling, and the right singular vectors as columns in the same order.
struct RightFactors {
  Eigen::VectorXd singular_values;  // [cols]
  Matrix vectors;                   // [cols, cols]
};

Result<RightFactors> DecomposeGram(const Matrix& gram) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);  // values rise; reads the lower half
  if (solver.info() != Eigen::Success) {
    return Status(KINGLET_INTERNAL,
                  std::string(kCannotFactorise) + ": the eigenvalues did not converge");
  }
  RightFactors factors;
  factors.singular_values = solver.eigenvalues().reverse().cwiseMax(0.0).cwiseSqrt();
  factors.vectors = solver.eigenvectors().rowwise().reverse();
  for (Eigen::Index c = 0; c < factors.vectors.cols(); ++c) {
    Eigen::Index largest;
    factors.vectors.col(c).cwiseAbs().maxCoeff(&largest);
    if (factors.vectors(largest, c) < 0) factors.vectors.col(c) *= -1;
  }
  return factors;
}

Result<LowRank> Truncate(const FloatRows& values, const RightFactors& factors, uint64_t rank,
                         size_t threads) {
  const Eigen::Index rows = values.rows(), kept = static_cast<Eigen::Index>(rank);
  using MutableRows =
      Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
  const Matrix projection = factors.vectors.leftCols(kept);
  LowRank result;
  result.rank = rank;
  result.projection.resize(static_cast<size_t>(values.cols() * kept));
  MutableRows(result.projection.data(), values.cols(), kept) = projection.cast<float>();
  result.table.resize(static_cast<size_t>(rows * kept));
  MutableRows table(result.table.data(), rows, kept);
  RunAllocatingShares(threads, [&](size_t share) {
    const auto step = kRowBlock * static_cast<Eigen::Index>(threads);
    for (Eigen::Index row = kRowBlock * static_cast<Eigen::Index>(share); row < rows; row += step) {
      const Eigen::Index height = std::min(kRowBlock, rows - row);
      const Matrix block = values.middleRows(row, height).cast<double>();
      table.middleRows(row, height) = (block * projection).cast<float>();
    }
  });
  for (uint64_t i = 0; i < result.table.size(); ++i) {
    if (!std::isfinite(result.table[i])) return NotFinite(i, result.table[i], " of the table");
  }
  const auto& all = factors.singular_values;
  result.singular_values.assign(all.begin(), all.begin() + std::min(rows, values.cols()));
  return result;
}

// The smallest rank whose singular values leave no more than `error` of the norm out.
uint64_t RankForError(const Eigen::VectorXd& singular_values, uint64_t most, double error) {
  double left_out = 0;
  const double allowed = error * error * singular_values.squaredNorm();
  uint64_t rank = most;
  while (rank > 1) {
    const double value = singular_values[static_cast<Eigen::Index>(rank - 1)];
    left_out += value * value;
    if (left_out > allowed) break;
    --rank;
  }
  return rank;
}

FloatRows FloatRowsOf(std::span<const float> values, const Shape& shape) {
  return {values.data(), static_cast<Eigen::Index>(Rows(shape)),
          static_cast<Eigen::Index>(Cols(shape))};
}

}  // namespace

Result<LowRank> FactoriseToRank(std::span<const float> values, const Shape& shape, uint64_t rank,
                                size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckMatrix(values, shape, threads));
  const uint64_t most = std::min(Rows(shape), Cols(shape));
  if (rank == 0 || rank > most) {
    return RefuseLowRank("rank", "1 to " + std::to_string(most), std::to_string(rank));
  }
  const FloatRows rows = FloatRowsOf(values, shape);
  const Result<RightFactors> factors = DecomposeGram(GramOf(rows, threads));
  if (!factors.ok()) return factors.status();
  return Truncate(rows, *factors, rank, threads);
}

Result<LowRank> FactoriseToError(std::span<const float> values, const Shape& shape, double error,
                                 size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckMatrix(values, shape, threads));
  if (!(error >= 0 && error <= 1)) {
    return RefuseLowRank("relative error", "a number in [0, 1]", std::to_string(error));
  }
  const FloatRows rows = FloatRowsOf(values, shape);
  const Result<RightFactors> factors = DecomposeGram(GramOf(rows, threads));
  if (!factors.ok()) return factors.status();
  const uint64_t most = std::min(Rows(shape), Cols(shape));
  return Truncate(rows, *factors, RankForError(factors->singular_values, most, error), threads);
}

}  // namespace kinglet
