#include "converters/passes/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "converters/passes/ordered_products.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

// Rows or columns that are computed together from those before them.
constexpr size_t kBlock = 64;

// A square matrix, row by row.
struct Square {
  explicit Square(size_t count) : size(count), values(count * count) {}
  double& at(size_t row, size_t column) { return values[row * size + column]; }
  MatrixPart<double> From(size_t row, size_t column) {
    return MatrixPart<double>{values.data(), size}.From(row, column);
  }
  MatrixPart<const double> From(size_t row, size_t column) const {
    return MatrixPart<const double>{values.data(), size}.From(row, column);
  }
  size_t size;
  std::vector<double> values;
};

// values[i] -= factor * others[i] for i in [begin, end).
void Subtract(double factor, const double* others, size_t begin, size_t end, double* values) {
  for (size_t i = begin; i < end; ++i) values[i] -= factor * others[i];
}

// Replaces the upper triangle of `a` by that of U, where a = U^T U. Returns whether `a` is positive
// definite.
bool Cholesky(size_t threads, Square& a) {
  for (size_t block = 0; block < a.size; block += kBlock) {
    const size_t end = std::min(block + kBlock, a.size), left = a.size - block;
    AddProducts(ProductSign::kMinus, end - block, left, block, std::as_const(a).From(0, block),
                std::as_const(a).From(0, block), a.From(block, block), threads);
    for (size_t row = block; row < end; ++row) {
      double* const values = a.From(row, 0).values;
      for (size_t k = block; k < row; ++k)
        Subtract(a.at(k, row), a.From(k, 0).values, row, a.size, values);
      if (!(values[row] > 0) || !std::isfinite(values[row])) return false;
      values[row] = std::sqrt(values[row]);
      for (size_t column = row + 1; column < a.size; ++column) values[column] /= values[row];
    }
  }
  return true;
}

// The inverse of U^T: a lower triangle.
Square InverseOfLower(const Square& upper, size_t threads) {
  Square inverse(upper.size);
  for (size_t block = 0; block < upper.size; block += kBlock) {
    const size_t end = std::min(block + kBlock, upper.size);
    // Rows above a block of columns are zeros.
    for (size_t column = 0; column < block; column += kBlock) {
      AddProducts(ProductSign::kMinus, end - block, kBlock, block - column,
                  upper.From(column, block), std::as_const(inverse).From(column, column),
                  inverse.From(block, column), threads);
    }
    for (size_t row = block; row < end; ++row) {
      double* const values = inverse.From(row, 0).values;
      for (size_t k = block; k < row; ++k) {
        Subtract(*upper.From(k, row).values, inverse.From(k, 0).values, 0, k + 1, values);
      }
      const double diagonal = *upper.From(row, row).values;
      for (size_t column = 0; column < row; ++column) values[column] /= diagonal;
      values[row] = 1 / diagonal;
    }
  }
  return inverse;
}

// The upper triangle of lower^T lower.
Square SquareOfLower(const Square& lower, size_t threads) {
  Square product(lower.size);
  for (size_t row = 0; row < lower.size; row += kBlock) {
    const size_t rows = std::min(kBlock, lower.size - row);
    for (size_t column = row; column < lower.size; column += kBlock) {
      AddProducts(ProductSign::kPlus, rows, std::min(kBlock, lower.size - column),
                  lower.size - column, lower.From(column, row), lower.From(column, column),
                  product.From(row, column), threads);
    }
  }
  return product;
}

// The factors by which a column's error is added to the later columns: row j of the upper triangle
// U, in the columns' order, where U^T U is the inverse of the damped moments.
struct Feedback {
  std::vector<size_t> order;  // of the columns
  Square upper;
};

std::optional<Feedback> FeedbackOf(const SecondMoments& moments, double damping, size_t threads) {
  const size_t size = moments.width;
  const auto moment = [&](size_t row, size_t column) { return moments.mean[row * size + column]; };
  double mean = 0;
  for (size_t i = 0; i < size; ++i) mean += moment(i, i) / static_cast<double>(size);
  if (!(mean > 0) || !std::isfinite(mean)) return std::nullopt;
  Feedback found{std::vector<size_t>(size), Square(size)};
  std::iota(found.order.begin(), found.order.end(), size_t{0});
  std::stable_sort(found.order.begin(), found.order.end(),
                   [&](size_t a, size_t b) { return moment(a, a) > moment(b, b); });
  Square& matrix = found.upper;
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      matrix.at(row, column) = moment(found.order[row], found.order[column]);
    }
    matrix.at(row, row) += damping * mean;
  }
  if (!Cholesky(threads, matrix)) return std::nullopt;
  matrix = SquareOfLower(InverseOfLower(matrix, threads), threads);
  if (!Cholesky(threads, matrix)) return std::nullopt;
  return found;
}

// Rounds up to kRowsTogether rows of `columns` values, block by block of columns: later blocks get
// the errors of a whole block at once.
constexpr size_t kRowsTogether = 32;

void RoundRows(std::span<const float> values, std::span<const float> scales, int bits,
               const Feedback& feedback, std::span<int16_t> codes) {
  const double n = SymmetricLevels(bits);
  const size_t columns = feedback.order.size(), rows = scales.size();
  std::vector<double> rest(rows * columns);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < columns; ++i) {
      rest[row * columns + i] = values[row * columns + feedback.order[i]];
    }
  }
  for (size_t block = 0; block < columns; block += kBlock) {
    const size_t end = std::min(block + kBlock, columns);
    double errors[kBlock][kRowsTogether];
    for (size_t row = 0; row < rows; ++row) {
      double* const of_row = rest.data() + row * columns;
      const double scale = scales[row];
      for (size_t i = block; i < end; ++i) {
        const size_t at = row * columns + feedback.order[i];
        double code = 0;
        if (values[at] != 0 && scale != 0)
          code = std::clamp(std::nearbyint(of_row[i] / scale), -n, n);
        codes[at] = static_cast<int16_t>(code);
        const double* const shares = feedback.upper.From(i, 0).values;
        const double error = (of_row[i] - scale * code) / shares[i];
        errors[i - block][row] = error;
        Subtract(error, shares, i + 1, end, of_row);
      }
    }
    AddProducts(ProductSign::kMinus, rows, columns - end, end - block, {errors[0], kRowsTogether},
                feedback.upper.From(block, end), {rest.data() + end, columns}, 1);
  }
}

}  // namespace

Quantised QuantiseWithFeedback(std::span<const float> values, const Shape& shape, int bits,
                               ScaleBy by, const SecondMoments& moments, double damping,
                               size_t threads) {
  Quantised quantised = QuantiseRows(values, shape, bits, by);
  const std::optional<Feedback> feedback = FeedbackOf(moments, damping, threads);
  if (!feedback) return quantised;
  const uint64_t columns = Cols(shape);
  RunRanges(Rows(shape), threads, [&](uint64_t first, uint64_t end) {
    for (uint64_t row = first; row < end; row += kRowsTogether) {
      const uint64_t rows = std::min<uint64_t>(kRowsTogether, end - row);
      RoundRows(values.subspan(row * columns, rows * columns),
                std::span(quantised.scales).subspan(row, rows), bits, *feedback,
                std::span(quantised.codes).subspan(row * columns, rows * columns));
    }
  });
  return quantised;
}

}  // namespace kinglet
