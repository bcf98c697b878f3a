#include "kernels/ref/quantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kinglet::ref::quantise_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(QuantisedCode, RoundsHalfToEvenAndClamps) {
  const ActivationQuantiser quantiser{2.0f, 0.5f};
  const std::vector<std::pair<float, int>> cases = {
      {0.0f, 0}, {0.25f, 0},  {0.75f, 2}, {-0.25f, 0},    {1.25f, 2},      {-1.75f, -4},
      {2.0f, 4}, {100.0f, 4}, {-9.f, -4}, {kInfinity, 4}, {-kInfinity, -4}};
  for (const auto& [x, code] : cases) {
    EXPECT_EQ(QuantisedCode(x, quantiser), code) << x;
    EXPECT_EQ(QuantisedCode(static_cast<double>(x), quantiser), code) << x;
  }
}

TEST(QuantisedCode, NaNHasOneAnswer) { EXPECT_EQ(QuantisedCode(kNaN, {2.0f, 0.5f}), -4); }

TEST(QuantisedCode, MayExceedTheNominalRangeWhenTheScaleIsTruncated) {
  // 16 bits leave 7 mantissa bits of scale, so max_abs / scale can round to more than 32,767.
  const float scale = 1.0f / 32768.0f;
  EXPECT_EQ(QuantisedCode(1.005f, {1.01f, scale}), 32932);
}

TEST(FixedPoint, CoversTheVectorExactly) {
  const std::vector<float> x = {0.5f, -1.0f, 0.25f};
  const float scale = FixedPointScale(x.data(), x.size());
  EXPECT_EQ(scale, 1.0f / 16383.0f);
  EXPECT_EQ(FixedPointCode(x[1], scale), -16383);
  for (float value : x)
    EXPECT_NEAR(static_cast<float>(FixedPointCode(value, scale)) * scale, value, scale / 2 + 1e-7f);
}

TEST(FixedPoint, ZerosAndTinyNumbersGiveZeros) {
  const std::vector<float> zeros(5, 0.0f);
  EXPECT_EQ(FixedPointScale(zeros.data(), 5), 0.0f);
  EXPECT_EQ(FixedPointScale(zeros.data(), 0), 0.0f);
  EXPECT_EQ(FixedPointCode(0.0f, 0.0f), 0);
  // The largest magnitude is so small that the scale underflows to 0.
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(FixedPointScale(&tiny, 1), 0.0f);
  EXPECT_EQ(FixedPointCode(tiny, 0.0f), 0);
}

TEST(FixedPoint, OverflowHasDefinedCodes) {
  const std::vector<float> x = {kInfinity, 1.0f, kNaN};
  const float scale = FixedPointScale(x.data(), x.size());
  EXPECT_EQ(scale, kInfinity);
  EXPECT_EQ(FixedPointCode(1.0f, scale), 0);
  EXPECT_EQ(FixedPointCode(kInfinity, scale), -16383);  // infinity / infinity is NaN
}

}  // namespace
}  // namespace kinglet::ref::quantise_test
