#include "converters/passes/magnitudes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::magnitudes_test {
namespace {

using By = RangeRule::By;

// Few large values among many small ones, as activations are.
std::vector<float> Activations(size_t count) {
  TestRandom random(11);
  std::vector<float> values(count);
  for (float& value : values) value = std::pow(random.Signed(), 9.0F) * 20;
  return values;
}

Magnitudes Of(const std::vector<float>& values) {
  Magnitudes magnitudes;
  for (size_t i = 0; i < values.size(); i += 100) {
    magnitudes.Add({values.data() + i, std::min<size_t>(100, values.size() - i)});
  }
  return magnitudes;
}

TEST(Magnitudes, TheLargestIsExact) {
  EXPECT_EQ(Of({1, -3.25F, 2}).Range({}, 9), 3.25F);
  EXPECT_EQ(Of({0, 0}).Range({9, By::kLeastSquares}, 9), 0.0F);
  EXPECT_EQ(Of({}).Range({9, By::kPercentile}, 9), 0.0F);
}

// Compared with the sorted values. A bin is 1/128 wide.
TEST(Magnitudes, Percentiles) {
  std::vector<float> values = Activations(20000);
  const Magnitudes magnitudes = Of(values);
  for (float& value : values) value = std::fabs(value);
  std::sort(values.begin(), values.end());
  for (const double percentile : {50.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto within = static_cast<size_t>(std::ceil(20000 * percentile / 100));
    const float exact = values[within - 1];
    const float found = magnitudes.Range({9, By::kPercentile, percentile}, 9);
    EXPECT_GE(found, exact) << percentile;
    EXPECT_LE(found, exact * (1 + 1.0F / 128)) << percentile;
  }
  EXPECT_EQ(magnitudes.Range({9, By::kPercentile, 100}, 9), values.back());
}

// The mean squared error of all values under a quantiser, computed from the values.
double ErrorOf(const std::vector<float>& values, double range, int bits) {
  const double n = std::pow(2.0, bits - 1) - 1, step = range / n;
  double sum = 0;
  for (const float value : values) {
    const double code = std::clamp(std::round(value / step), -n, n);
    sum += (value - code * step) * (value - code * step);
  }
  return sum / static_cast<double>(values.size());
}

TEST(Magnitudes, LeastSquaresIsNearTheBestOfManyRanges) {
  const std::vector<float> values = Activations(5000);
  const Magnitudes magnitudes = Of(values);
  for (const int bits : {2, 3, 4, 6, 9}) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 1; i <= 400; ++i) {
      best = std::min(best, ErrorOf(values, double{magnitudes.largest()} * i / 400, bits));
    }
    const float range = magnitudes.Range({16, By::kLeastSquares}, bits);
    EXPECT_LE(ErrorOf(values, range, bits), 1.05 * best) << bits;
    EXPECT_LE(range, magnitudes.largest());
  }
}

TEST(Magnitudes, OfTwoAreThoseOfAllValues) {
  const std::vector<float> values = Activations(3000);
  Magnitudes both = Of({values.begin(), values.begin() + 1000});
  both.Add(Of({values.begin() + 1000, values.end()}));
  both.Add(Magnitudes());
  for (const By by : {By::kLargest, By::kPercentile, By::kLeastSquares}) {
    EXPECT_EQ(both.Range({9, by, 99}, 9), Of(values).Range({9, by, 99}, 9));
  }
}

TEST(Magnitudes, WhatIsNotFiniteStays) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const By by : {By::kLargest, By::kPercentile, By::kLeastSquares}) {
    EXPECT_TRUE(std::isnan(Of({1, nan, 2}).Range({9, by}, 9)));
    EXPECT_EQ(Of({1, -infinity, 2}).Range({9, by}, 9), infinity);
  }
}

}  // namespace
}  // namespace kinglet::magnitudes_test
