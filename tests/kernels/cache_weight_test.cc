#include "kernels/cache_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kinglet::cache_weight_test {
namespace {

TEST(CacheWeight, IsTheNearestMultipleOfTwoToTheMinus40) {
  EXPECT_EQ(CacheWeight(1.0f), 1.0f);
  EXPECT_EQ(CacheWeight(0.1f), 0.1f);  // a float from 2^-17 on is a multiple
  EXPECT_EQ(CacheWeight(0x1.000002p-17f), 0x1.000002p-17f);
  EXPECT_EQ(CacheWeight(0x1.8p-40f), 0x1p-39f);  // half to even
  EXPECT_EQ(CacheWeight(0x1.4p-39f), 0x1p-39f);
  EXPECT_EQ(CacheWeight(0x1.8p-41f), 0x1p-40f);
  EXPECT_EQ(CacheWeight(0x1p-41f), 0.0f);
  EXPECT_EQ(CacheWeight(0x1.0000000000001p-20), 0x1.0000000000001p-20);  // ref64 does not round
}

TEST(CacheWeight, UnitsAddUpExactlyAndKeepNaN) {
  uint64_t units = 0;
  for (int i = 0; i < 1 << 20; ++i) units = AddUnits(units, UnitsOf(0x1.fffffep-1f));
  EXPECT_EQ(units, ((uint64_t{1} << 40) - (1 << 16)) << 20);
  EXPECT_EQ(WeightOfUnits<float>(units), 0x1.fffffep-1f * 0x1p20f);
  const uint64_t nan = UnitsOf(std::numeric_limits<float>::quiet_NaN());
  for (int i = 0; i < 9; ++i) units = AddUnits(units, nan);
  EXPECT_TRUE(std::isnan(WeightOfUnits<float>(units)));
}

}  // namespace
}  // namespace kinglet::cache_weight_test
