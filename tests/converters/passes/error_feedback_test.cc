#include "converters/passes/error_feedback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::error_feedback_test {
namespace {

std::vector<float> RandomValues(uint64_t count, uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

// The moments of vectors near a line, so that their entries are correlated.
SecondMoments Correlated(uint64_t width) {
  SecondMoments moments{width, std::vector<double>(width * width)};
  TestRandom random(2);
  constexpr int kVectors = 300;
  for (int i = 0; i < kVectors; ++i) {
    std::vector<double> x(width);
    const double along = double{random.Signed()};
    for (uint64_t j = 0; j < width; ++j) {
      x[j] = (1 + 0.1 * static_cast<double>(j)) * along + 0.2 * double{random.Signed()};
    }
    for (uint64_t a = 0; a < width; ++a) {
      for (uint64_t b = 0; b < width; ++b) moments.mean[a * width + b] += x[a] * x[b] / kVectors;
    }
  }
  return moments;
}

SecondMoments Identity(uint64_t width) {
  SecondMoments moments{width, std::vector<double>(width * width)};
  for (uint64_t i = 0; i < width; ++i) moments.mean[i * width + i] = 1;
  return moments;
}

// The mean over x of ((w - scale q) . x)^2, over all rows.
double ProductError(const std::vector<float>& values, const Quantised& quantised,
                    const SecondMoments& moments) {
  const uint64_t width = moments.width;
  double sum = 0;
  for (size_t row = 0; row < quantised.scales.size(); ++row) {
    std::vector<double> d(width);
    for (uint64_t i = 0; i < width; ++i) {
      d[i] = double{values[row * width + i]} -
             double{quantised.scales[row]} * quantised.codes[row * width + i];
    }
    for (uint64_t a = 0; a < width; ++a) {
      for (uint64_t b = 0; b < width; ++b) sum += d[a] * d[b] * moments.mean[a * width + b];
    }
  }
  return sum;
}

TEST(QuantiseWithFeedback, WithoutCorrelationRoundsToTheNearest) {
  const std::vector<float> values = RandomValues(8 * 5, 1);
  const Quantised plain = QuantiseRows(values, {8, 5}, 4);
  const Quantised found =
      QuantiseWithFeedback(values, {8, 5}, 4, ScaleBy::kLargest, Identity(5), 1, 1);
  EXPECT_EQ(found.scales, plain.scales);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(found.codes[i], plain.codes[i], 1);
  EXPECT_LE(ProductError(values, found, Identity(5)), ProductError(values, plain, Identity(5)));
}

// Of two columns the second one's best value, once the first is rounded, has a formula:
// w2 + e1 h12 / h22, e1 being the first one's error.
TEST(QuantiseWithFeedback, OfTwoColumnsIsTheBestSecondCode) {
  const SecondMoments moments{2, {2, 0.9, 0.9, 1}};
  constexpr double kDamping = 0.01;
  const double h22 = 1 + kDamping * 1.5;
  const std::vector<float> values = RandomValues(2 * 500, 3);
  const Quantised found =
      QuantiseWithFeedback(values, {500, 2}, 3, ScaleBy::kLeastSquares, moments, kDamping, 1);
  for (size_t row = 0; row < 500; ++row) {
    const double scale = found.scales[row], w1 = values[2 * row], w2 = values[2 * row + 1];
    const double q1 = std::fmin(3, std::fmax(-3, std::nearbyint(w1 / scale)));
    EXPECT_EQ(found.codes[2 * row], q1);
    const double wanted = w2 + (w1 - scale * q1) * 0.9 / h22;
    const double q2 = std::fmin(3, std::fmax(-3, wanted / scale));
    EXPECT_NEAR(found.codes[2 * row + 1], q2, 0.5 + 1e-9);
  }
}

TEST(QuantiseWithFeedback, ProductsChangeLess) {
  constexpr uint64_t kWidth = 24, kRows = 40;
  const std::vector<float> values = RandomValues(kRows * kWidth, 4);
  const SecondMoments moments = Correlated(kWidth);
  for (const int bits : {2, 3, 4, 8}) {
    const Quantised plain = QuantiseRows(values, {kRows, kWidth}, bits);
    const Quantised found =
        QuantiseWithFeedback(values, {kRows, kWidth}, bits, ScaleBy::kLargest, moments, 0.01, 1);
    EXPECT_LT(ProductError(values, found, moments), 0.5 * ProductError(values, plain, moments));
    for (const size_t threads : {2, 7}) {
      EXPECT_EQ(QuantiseWithFeedback(values, {kRows, kWidth}, bits, ScaleBy::kLargest, moments,
                                     0.01, threads)
                    .codes,
                found.codes);
    }
  }
}

TEST(QuantiseWithFeedback, KeepsZerosAndRowsOfZeros) {
  std::vector<float> values = RandomValues(3 * 6, 5);
  for (size_t i = 0; i < 6; ++i) values[6 + i] = 0;
  values[2] = values[13] = 0;
  const Quantised found =
      QuantiseWithFeedback(values, {3, 6}, 3, ScaleBy::kLeastSquares, Correlated(6), 0.1, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) {
      EXPECT_EQ(found.codes[i], 0) << i;
    }
  }
  EXPECT_EQ(found.scales[1], 0.0F);
}

TEST(QuantiseWithFeedback, MomentsOfNothingRoundToTheNearest) {
  const std::vector<float> values = {0.3F, -1};
  const Quantised plain = QuantiseRows(values, {1, 2}, 4);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double moment : {0.0, infinity, std::nan("")}) {
    const SecondMoments moments{2, {moment, 0, 0, moment}};
    EXPECT_EQ(QuantiseWithFeedback(values, {1, 2}, 4, ScaleBy::kLargest, moments, 1, 1).codes,
              plain.codes);
  }
  const SecondMoments one{1, {4}};
  EXPECT_EQ(QuantiseWithFeedback({values.data(), 1}, {1, 1}, 4, ScaleBy::kLargest, one, 1, 3).codes,
            std::vector<int16_t>{7});
}

}  // namespace
}  // namespace kinglet::error_feedback_test
