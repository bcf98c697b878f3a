#include "converters/splitmix.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kinglet::splitmix_test {
namespace {

// The sequence that other implementations of splitmix64 give for this seed.
TEST(SplitMix64, GivesThePublishedSequence) {
  SplitMix64 random(1234567);
  for (const uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                  4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(random.Next(), expected);
  }
}

TEST(SplitMix64, StaysInItsRanges) {
  SplitMix64 random(3);
  bool low = false, high = false;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t number = random.Below(7);
    EXPECT_LT(number, 7u);
    low |= number == 0;
    high |= number == 6;
    const float real = random.Signed();
    EXPECT_GE(real, -1);
    EXPECT_LT(real, 1);
    const double unit = random.Unit();
    EXPECT_GE(unit, 0);
    EXPECT_LT(unit, 1);
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(random.Below(1), 0u);
  // The first of the published sequence, 53 bits of it.
  EXPECT_EQ(SplitMix64(1234567).Unit(), std::floor(6457827717110365317.0 / 2048) / 0x1p53);
}

}  // namespace
}  // namespace kinglet::splitmix_test
