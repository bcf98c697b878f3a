#include "runtime/compress/logistic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kinglet::compress::logistic_test {
namespace {

TEST(Logistic, TablesAreTheFunctionAndItsInverse) {
  for (int odds = -kMostOdds; odds <= kMostOdds; ++odds) {
    const double p = kOne / (1 + std::exp(-odds / 256.0));
    EXPECT_NEAR(Squash(odds), p, 1.0) << odds;
    EXPECT_EQ(Squash(odds) + Squash(-odds), kOne) << odds;
  }
  EXPECT_EQ(Squash(1 << 20), Squash(kMostOdds));
  EXPECT_EQ(Squash(-(1 << 20)), Squash(-kMostOdds));
  for (int p = 1; p < kOne; ++p) {
    const double odds = 256 * std::log(p / (kOne - static_cast<double>(p)));
    const double slope = 256.0 * kOne / (static_cast<double>(p) * (kOne - p));
    // By 16ths of probability in the middle.
    EXPECT_NEAR(Stretch(p), std::clamp<double>(odds, -kMostOdds, kMostOdds), 1 + 10 * slope) << p;
  }
}

// The tables are computed by the compiler: a digest of them on any machine is this one.
TEST(Logistic, TablesAreTheSameOnEveryMachine) {
  uint64_t digest = 0;
  for (int odds = -kMostOdds; odds <= kMostOdds; ++odds) {
    digest = digest * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(Squash(odds));
  }
  for (int p = 1; p < kOne; ++p) {
    digest = digest * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(Stretch(p) + kOne);
  }
  EXPECT_EQ(digest, 17161513061445584286u);
}

}  // namespace
}  // namespace kinglet::compress::logistic_test
