#include "converters/passes/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "converters/thread_shares.h"

namespace kinglet {
namespace {

// A square matrix, row by row.
struct Square {
  explicit Square(size_t count) : size(count), values(count * count) {}
  double& at(size_t row, size_t column) { return values[row * size + column]; }
  double at(size_t row, size_t column) const { return values[row * size + column]; }
  size_t size;
  std::vector<double> values;
};

// The lower triangle L of a = L L^T. Returns nullopt unless `a` is positive definite.
std::optional<Square> Cholesky(const Square& a) {
  Square lower(a.size);
  for (size_t row = 0; row < a.size; ++row) {
    for (size_t column = 0; column <= row; ++column) {
      double rest = a.at(row, column);
      for (size_t k = 0; k < column; ++k) rest -= lower.at(row, k) * lower.at(column, k);
      if (column < row) {
        lower.at(row, column) = rest / lower.at(column, column);
      } else if (rest > 0 && std::isfinite(rest)) {
        lower.at(row, row) = std::sqrt(rest);
      } else {
        return std::nullopt;
      }
    }
  }
  return lower;
}

// The inverse of L L^T.
Square InverseOf(const Square& lower) {
  const size_t size = lower.size;
  Square inverse(size);  // of L first
  for (size_t column = 0; column < size; ++column) {
    inverse.at(column, column) = 1 / lower.at(column, column);
    for (size_t row = column + 1; row < size; ++row) {
      double sum = 0;
      for (size_t k = column; k < row; ++k) sum += lower.at(row, k) * inverse.at(k, column);
      inverse.at(row, column) = -sum / lower.at(row, row);
    }
  }
  Square product(size);
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column <= row; ++column) {
      double sum = 0;
      for (size_t k = row; k < size; ++k) sum += inverse.at(k, row) * inverse.at(k, column);
      product.at(row, column) = product.at(column, row) = sum;
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

std::optional<Feedback> FeedbackOf(const SecondMoments& moments, double damping) {
  const size_t size = moments.width;
  const auto moment = [&](size_t row, size_t column) { return moments.mean[row * size + column]; };
  double mean = 0;
  for (size_t i = 0; i < size; ++i) mean += moment(i, i) / static_cast<double>(size);
  if (!(mean > 0) || !std::isfinite(mean)) return std::nullopt;
  Feedback found{std::vector<size_t>(size), Square(size)};
  std::iota(found.order.begin(), found.order.end(), size_t{0});
  std::stable_sort(found.order.begin(), found.order.end(),
                   [&](size_t a, size_t b) { return moment(a, a) > moment(b, b); });
  Square damped(size);
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      damped.at(row, column) = moment(found.order[row], found.order[column]);
    }
    damped.at(row, row) += damping * mean;
  }
  const std::optional<Square> lower = Cholesky(damped);
  if (!lower) return std::nullopt;
  const std::optional<Square> root = Cholesky(InverseOf(*lower));
  if (!root) return std::nullopt;
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = row; column < size; ++column) {
      found.upper.at(row, column) = root->at(column, row);
    }
  }
  return found;
}

void RoundRow(std::span<const float> row, float scale, int bits, const Feedback& feedback,
              std::span<int16_t> codes) {
  const double n = SymmetricLevels(bits);
  std::vector<double> rest(row.size());
  for (size_t i = 0; i < row.size(); ++i) rest[i] = row[feedback.order[i]];
  for (size_t i = 0; i < row.size(); ++i) {
    const size_t column = feedback.order[i];
    const double code =
        row[column] == 0 ? 0 : std::clamp(std::nearbyint(rest[i] / double{scale}), -n, n);
    codes[column] = static_cast<int16_t>(code);
    const double error = (rest[i] - double{scale} * code) / feedback.upper.at(i, i);
    const double* const shares = feedback.upper.values.data() + i * row.size();
    for (size_t k = i + 1; k < row.size(); ++k) rest[k] -= error * shares[k];
  }
}

}  // namespace

Quantised QuantiseWithFeedback(std::span<const float> values, const Shape& shape, int bits,
                               ScaleBy by, const SecondMoments& moments, double damping,
                               size_t threads) {
  Quantised quantised = QuantiseRows(values, shape, bits, by);
  const std::optional<Feedback> feedback = FeedbackOf(moments, damping);
  if (!feedback) return quantised;
  const uint64_t columns = Cols(shape);
  RunRanges(Rows(shape), threads, [&](uint64_t first, uint64_t end) {
    for (uint64_t row = first; row < end; ++row) {
      const float scale = quantised.scales[row];
      if (scale == 0) continue;
      RoundRow(values.subspan(row * columns, columns), scale, bits, *feedback,
               std::span(quantised.codes).subspan(row * columns, columns));
    }
  });
  return quantised;
}

}  // namespace kinglet
