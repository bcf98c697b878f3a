#include "converters/passes/prune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::prune_test {
namespace {

std::vector<float> Pruned(double fraction, const std::vector<float>& values) {
  EncodedTensor tensor{"t", {values.size()}, DenseF32{values}, false};
  PruneTensor(fraction, tensor);
  return DecodedValues(tensor);
}

TEST(PruneTensor, TakesTheSmallestMagnitudes) {
  EXPECT_EQ(Pruned(0.5, {3, -1, 2, -4}), (std::vector<float>{3, 0, 0, -4}));
  EXPECT_EQ(Pruned(0.25, {3, -1, 2, -4}), (std::vector<float>{3, 0, 2, -4}));
  EXPECT_EQ(Pruned(0, {3, -1}), (std::vector<float>{3, -1}));
}

TEST(PruneTensor, RoundsTheCountDown) {
  EXPECT_EQ(Pruned(0.49, {3, 1}), (std::vector<float>{3, 1}));
  EXPECT_EQ(Pruned(0.99, {5}), std::vector<float>{5});
  EXPECT_EQ(Pruned(0.99, {5, 4, 3}), (std::vector<float>{5, 0, 0}));
}

TEST(PruneTensor, EqualMagnitudesByLowerIndex) {
  EXPECT_EQ(Pruned(0.5, {1, -1, 1, -1}), (std::vector<float>{0, 0, 1, -1}));
}

TEST(PruneTensor, ZerosCountAlready) {
  EXPECT_EQ(Pruned(0.5, {0, 2, -0.0F, 1}), (std::vector<float>{0, 2, 0, 1}));
  EXPECT_EQ(Pruned(0.25, {0, 2, 0, 1}), (std::vector<float>{0, 2, 0, 1}));
}

TEST(PruneTensor, AgreesWithSorting) {
  TestRandom random(9);
  for (const size_t count : {1U, 2U, 7U, 100U, 1001U}) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random.Below(50)) - 25.0F;
    for (const double fraction : {0.0, 0.1, 0.3375, 0.5, 0.75, 0.999}) {
      std::vector<float> magnitudes = values;
      for (float& value : magnitudes) value = std::abs(value);
      std::sort(magnitudes.begin(), magnitudes.end());
      const auto zeros = static_cast<size_t>(fraction * static_cast<double>(count));
      const std::vector<float> pruned = Pruned(fraction, values);
      std::vector<float> kept;
      for (size_t i = 0; i < count; ++i) {
        if (pruned[i] != 0) {
          EXPECT_EQ(pruned[i], values[i]);
        }
        kept.push_back(std::abs(pruned[i]));
      }
      std::sort(kept.begin(), kept.end());
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(kept[i], i < zeros ? 0 : magnitudes[i]);
    }
  }
}

TEST(PruneTensor, QuantisedByTheValuesAndNotTheCodes) {
  // The first row's codes are larger, its values smaller.
  EncodedTensor tensor{
      "t", {2, 2}, Quantised{4, ScaleRule::kMultiplyPerRow, {7, -6, 1, 2}, {0.125F, 1.0F}}, false};
  PruneTensor(0.5, tensor);
  const auto& quantised = std::get<Quantised>(tensor.values);
  EXPECT_EQ(quantised.codes, (std::vector<int16_t>{0, 0, 1, 2}));
  EXPECT_EQ(quantised.scales, (std::vector<float>{0.125F, 1.0F}));
}

TEST(PruneTensor, HalfFloats) {
  EncodedTensor tensor{"t", {2}, DenseF16{{FloatToHalf(0.5F), FloatToHalf(-2)}}, false};
  PruneTensor(0.5, tensor);
  EXPECT_EQ(DecodedValues(tensor), (std::vector<float>{0, -2}));
}

// Magnitudes with equal upper 16 bits, and the smallest and largest float32.
TEST(PruneTensor, TellsNeighbouringFloatsApart) {
  const float one = 1, above = std::nextafter(one, 2.0F), below = std::nextafter(one, 0.0F);
  EXPECT_EQ(Pruned(0.5, {above, -one, below, -above}), (std::vector<float>{above, 0, 0, -above}));
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Pruned(0.5, {largest, smallest}), (std::vector<float>{largest, 0}));
}

}  // namespace
}  // namespace kinglet::prune_test
