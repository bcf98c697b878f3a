#include "format/encoding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace kinglet::encoding_test {
namespace {

// The value of an IEEE 754 binary16 float, by definition.
double HalfByDefinition(uint16_t word) {
  const double sign = (word & 0x8000) != 0 ? -1 : 1;
  const int exponent = (word >> 10) & 31;
  const int mantissa = word & 1023;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(EncodingTest, WidensEveryHalfExactly) {
  for (uint32_t word = 0; word < 65536; ++word) {
    const double expected = HalfByDefinition(static_cast<uint16_t>(word));
    const float widened = HalfToFloat(static_cast<uint16_t>(word));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(widened)) << word;
    } else {
      EXPECT_EQ(static_cast<double>(widened), expected) << word;
      EXPECT_EQ(std::signbit(widened), std::signbit(expected)) << word;
    }
  }
}

TEST(EncodingTest, EveryHalfSurvivesTheWayBack) {
  for (uint32_t word = 0; word < 65536; ++word) {
    const auto half = static_cast<uint16_t>(word);
    if (std::isnan(HalfByDefinition(half))) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(HalfToFloat(half)))));
    } else {
      EXPECT_EQ(FloatToHalf(HalfToFloat(half)), half);
    }
  }
}

TEST(EncodingTest, NarrowsToTheNearestHalfAndTiesToEven) {
  // For each pair of neighbouring halves: the exact middle, and one float below and above it. The
  // upper neighbour of the largest half counts as 65,536 (IEEE 754, 4.3.1).
  for (uint32_t word = 0; word < 0x7C00; ++word) {
    const auto low = static_cast<uint16_t>(word);
    const auto high = static_cast<uint16_t>(word + 1);
    const double above = high == 0x7C00 ? 65536.0 : HalfByDefinition(high);
    const auto middle = static_cast<float>((HalfByDefinition(low) + above) / 2);
    const float below_middle = std::nextafter(middle, 0.0f);
    const float above_middle = std::nextafter(middle, std::numeric_limits<float>::infinity());
    const uint16_t even = low % 2 == 0 ? low : high;
    ASSERT_EQ(FloatToHalf(middle), even) << word;
    ASSERT_EQ(FloatToHalf(below_middle), low) << word;
    ASSERT_EQ(FloatToHalf(above_middle), high) << word;
    ASSERT_EQ(FloatToHalf(-middle), even | 0x8000) << word;
  }
}

TEST(EncodingTest, NarrowsExtremeFloats) {
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::max()), 0xFC00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(std::nanf("")))));
}

TEST(EncodingTest, ShapesCountTheirEntries) {
  EXPECT_EQ(Rows({5}), 1u);
  EXPECT_EQ(Cols({5}), 5u);
  EXPECT_EQ(Count({3, 5}), 15u);
  EXPECT_EQ(ShapeText({576, 256}), "[576, 256]");
  EXPECT_EQ(ShapeText({7}), "[7]");
}

TEST(EncodingTest, DecodesByTheThreeScaleRules) {
  const EncodedTensor per_row{
      "a", {2, 2}, Quantised{4, ScaleRule::kMultiplyPerRow, {1, -8, 7, 0}, {0.5f, 3.0f}}, false};
  EXPECT_EQ(DecodedValues(per_row), (std::vector<float>{0.5f, -4.0f, 21.0f, 0.0f}));
  const EncodedTensor per_tensor{
      "b", {2, 2}, Quantised{4, ScaleRule::kMultiplyPerTensor, {1, -8, 7, 0}, {0.25f}}, false};
  EXPECT_EQ(DecodedValues(per_tensor), (std::vector<float>{0.25f, -2.0f, 1.75f, 0.0f}));
  const EncodedTensor divided{
      "c", {3}, Quantised{4, ScaleRule::kDividePerTensor, {1, -8, 7}, {3.0f}}, false};
  // 1/3 and 7/3 in binary32, rounded to nearest even.
  EXPECT_EQ(DecodedValues(divided),
            (std::vector<float>{0x1.555556p-2f, -0x1.555556p+1f, 0x1.2aaaaap+1f}));
  EXPECT_EQ(CountNonzeros(per_row), 3u);
}

TEST(EncodingTest, NegativeZeroIsNoNonzero) {
  EXPECT_EQ(CountNonzeros({"a", {3}, DenseF32{{0.0f, -0.0f, 1e-40f}}, false}), 1u);
  EXPECT_EQ(CountNonzeros({"a", {3}, DenseF16{{0x0000, 0x8000, 0x0001}}, false}), 1u);
}

TEST(EncodingTest, ScalesAreShiftedWords) {
  // 1.5 is 0x3FC00000: 0xFF after 22 bits; 0.5 is 0x3F000000: 0xFC.
  const std::byte bytes[2] = {std::byte{0xFF}, std::byte{0xFC}};
  EXPECT_EQ(DecodeScales({2, 8, 22, bytes}), (std::vector<float>{1.5f, 0.5f}));
}

}  // namespace
}  // namespace kinglet::encoding_test
