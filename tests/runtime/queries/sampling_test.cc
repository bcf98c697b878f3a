#include "runtime/queries/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::sampling_test {
namespace {

TEST(Sampling, UniformDrawsAreUniformAndIndependentOfEachOther) {
  std::vector<int> cells(64);
  std::set<double> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t position = 0; position < 160; ++position) {
      for (uint64_t index = 0; index < 2; ++index) {
        const double draw = UniformDraw(seed, position, index);
        ASSERT_GE(draw, 0);
        ASSERT_LT(draw, 1);
        seen.insert(draw);
        ++cells[static_cast<size_t>(draw * 64)];
      }
    }
  }
  EXPECT_EQ(seen.size(), 6400u);
  double chi_square = 0;
  for (const int count : cells) chi_square += (count - 100.0) * (count - 100.0) / 100;
  EXPECT_LT(chi_square, 118);  // 63 degrees of freedom: exceeded once in 30,000
}

TEST(Sampling, UniformDrawsAreTheDocumentedDigest) {
  // From `xxhsum -H3` on the 24 bytes of 1, 2, 3.
  EXPECT_EQ(UniformDraw(1, 2, 3), static_cast<double>(0x7c68b4906e7ea780 >> 11) / 0x1p53);
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(2, 1, 3));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(1, 3, 2));
}

// The mass itself, of random tokens whose probabilities add up to `share`.
TEST(Sampling, BoundsHoldForEveryTemperature) {
  TestRandom random(3);
  for (int round = 0; round < 2000; ++round) {
    const uint32_t tokens = 1 + random.Below(50);
    const double share = std::exp(-10.0 * random.Below(1000) / 1000);
    std::vector<double> weights(tokens);
    double sum = 0;
    for (double& weight : weights) {
      weight = std::exp(8.0 * random.Signed());
      sum += weight;
    }
    double largest = 0;
    for (double& weight : weights) {
      weight *= share / sum;
      largest = std::max(largest, weight);
    }
    const double reference = std::log(largest) + random.Below(3);  // some other token may be larger
    for (const double temperature : {0.01, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0, 1000.0}) {
      double exact = 0;
      for (const double weight : weights) {
        exact += std::exp((std::log(weight) - reference) / temperature);
      }
      const MassBounds bounds = BoundMass(std::log(share), tokens, temperature, reference);
      ASSERT_LE(bounds.low, exact) << temperature;
      ASSERT_GE(bounds.high, exact * (1 - 1e-12)) << temperature;
      ASSERT_TRUE(std::isfinite(bounds.high));
      if (temperature == 1.0) {
        ASSERT_GE(bounds.low, 0.99 * exact);
        ASSERT_LE(bounds.high, 1.01 * exact);
      }
    }
  }
}

TEST(Sampling, BoundsOfTheImpossibleAndTheExtreme) {
  const MassBounds none = BoundMass(-INFINITY, 100, 1, -1);
  EXPECT_EQ(none.low, 0);
  EXPECT_EQ(none.high, 0);
  for (const double temperature :
       {5.7e-309, 6e-309, 1e-308, 1e-307, 1e-45, 1e-30, 1e-3, 1e30, 3e38, 1e308}) {
    for (const double log_probability : {-1000.0, -2.0, -1.0, -1e-9}) {
      const MassBounds bounds = BoundMass(log_probability, 1000, temperature, -2);
      EXPECT_FALSE(std::isnan(bounds.low) || std::isnan(bounds.high));
      EXPECT_LE(bounds.low, bounds.high);
      EXPECT_LE(bounds.high, 1001);
    }
  }
}

TEST(Sampling, ExactMassesAreChosenByTheirCumulativeSum) {
  const std::vector<MassBounds> masses = {MassBounds::Exactly(1), MassBounds::Exactly(0),
                                          MassBounds::Exactly(2), MassBounds::Exactly(1)};
  EXPECT_EQ(*DrawCluster(masses, 0), 0u);
  EXPECT_EQ(*DrawCluster(masses, 0.2499), 0u);
  EXPECT_EQ(*DrawCluster(masses, 0.25), 2u);
  EXPECT_EQ(*DrawCluster(masses, 0.7499), 2u);
  EXPECT_EQ(*DrawCluster(masses, 0.75), 3u);
  EXPECT_EQ(*DrawCluster(masses, 1 - 0x1p-53), 3u);
  const std::vector<MassBounds> one = {MassBounds::Exactly(3)};
  EXPECT_EQ(*DrawCluster(one, 0.999), 0u);
}

// A cluster that is drawn from bounds is the one that all masses within these bounds give.
TEST(Sampling, AnEarlyChoiceIsNeverTakenBack) {
  TestRandom random(11);
  int decided = 0, open = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<MassBounds> masses(1 + random.Below(4)), exact(masses.size());
    for (size_t i = 0; i < masses.size(); ++i) {
      const double low = random.Below(100), width = random.Below(4) == 0 ? random.Below(30) : 0;
      masses[i] = {low, low + width};
      // One of the ends, or something between.
      const uint32_t where = random.Below(3);
      const double mass = where == 0 ? low : where == 1 ? low + width : low + width / 2;
      exact[i] = MassBounds::Exactly(mass);
    }
    exact[0] = MassBounds::Exactly(exact[0].low + 1);
    masses[0] = {masses[0].low + 1, masses[0].high + 1};
    const double uniform = (random.Below(1 << 20) + 0.5) / (1 << 20);
    const auto early = DrawCluster(masses, uniform);
    ++(early ? decided : open);
    if (early) {
      ASSERT_EQ(*early, *DrawCluster(exact, uniform)) << round;
    }
  }
  EXPECT_GT(decided, 5000);
  EXPECT_GT(open, 500);
}

using State = Nucleus::State;

TEST(Sampling, ANucleusEndsWithTheTokenThatReachesItsShare) {
  const std::vector<double> sums = {4, 6, 7, 7.5};
  const std::vector<MassBounds> exact = {MassBounds::Exactly(5), MassBounds::Exactly(3)};
  const auto tokens = [&](double top_p, bool all = true) {
    const Nucleus nucleus = FindNucleus(sums, all, exact, top_p);
    return nucleus.state == State::kKnown ? nucleus.tokens : 0;
  };
  EXPECT_EQ(tokens(1e-300), 1u);
  EXPECT_EQ(tokens(0.5), 1u);
  EXPECT_EQ(tokens(0.5000001), 2u);
  EXPECT_EQ(tokens(0.75), 2u);
  EXPECT_EQ(tokens(0.9), 4u);
  EXPECT_EQ(tokens(0.99), 4u);  // all tokens, whatever rounding made of their sum
  EXPECT_EQ(tokens(0.99, false), 0u);
  EXPECT_EQ(FindNucleus(sums, false, exact, 0.99).state, State::kNeedsTokens);
}

// A nucleus that is decided from bounds is the one that all masses within these bounds give.
TEST(Sampling, ANucleusThatIsKnownEarlyIsNeverTakenBack) {
  TestRandom random(19);
  int known = 0, open = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<double> sums;
    for (uint32_t i = random.Below(6) + 1, sum = 0; i > 0; --i) {
      sums.push_back(sum += random.Below(20) + 1);
    }
    const double low = sums.back() + random.Below(10), width = random.Below(10);
    const double top_p = (random.Below(1000) + 1) / 1000.0;
    const bool all = random.Below(2) == 0;
    const Nucleus early =
        FindNucleus(sums, all, std::vector<MassBounds>{{low, low + width}}, top_p);
    ++(early.state == State::kKnown ? known : open);
    for (const double mass : {low, low + width / 2, low + width}) {
      const Nucleus late =
          FindNucleus(sums, all, std::vector<MassBounds>{MassBounds::Exactly(mass)}, top_p);
      ASSERT_NE(late.state, State::kNeedsMasses);
      if (early.state == State::kKnown) {
        ASSERT_EQ(late.tokens, early.tokens) << round;
      }
      if (early.state == State::kNeedsTokens) {
        ASSERT_EQ(late.state, State::kNeedsTokens);
      }
    }
  }
  EXPECT_GT(known, 3000);
  EXPECT_GT(open, 500);
}

}  // namespace
}  // namespace kinglet::sampling_test
