#include "tests/synthesis/random_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace kinglet::random_values_test {
namespace {

TEST(RandomValues, HaveTheirRangeAndRootMeanSquare) {
  const std::vector<float> values = RandomValues(20000, 0, 2, GeneratorOf(1, "a"));
  double squares = 0;
  for (const float value : values) {
    EXPECT_GE(std::fabs(value), 0.5F);
    EXPECT_LE(std::fabs(value), 2.0F);
    squares += double{value} * value;
  }
  EXPECT_NEAR(std::sqrt(squares / 20000), 2 * kRootMeanSquare, 0.02);
  EXPECT_TRUE(RandomValues(0, 0, 1, GeneratorOf(1, "a")).empty());
}

TEST(RandomValues, DependOnSeedAndName) {
  const auto of = [](uint64_t seed, const char* name) {
    return RandomValues(5, 0, 1, GeneratorOf(seed, name));
  };
  EXPECT_EQ(of(1, "a"), of(1, "a"));
  EXPECT_NE(of(1, "a"), of(2, "a"));
  EXPECT_NE(of(1, "a"), of(1, "b"));
}

TEST(RandomCodes, AreNotZeroAndReachTheLimit) {
  for (const int bits : {2, 3, 9, 16}) {
    const Quantised codes = RandomCodes(2000, 3, bits, GeneratorOf(1, "a"));
    const int largest = (1 << (bits - 1)) - 1;
    EXPECT_FLOAT_EQ(codes.scales.at(0) * static_cast<float>(largest), 3);
    int positive = 0;
    for (const int16_t code : codes.codes) {
      EXPECT_NE(code, 0);
      EXPECT_LE(std::abs(code), largest);
      EXPECT_GE(4 * std::abs(code), largest);
      positive += code > 0;
    }
    EXPECT_NEAR(positive, 1000, 150);
  }
}

}  // namespace
}  // namespace kinglet::random_values_test
