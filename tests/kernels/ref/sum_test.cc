#include "kernels/ref/sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kinglet::ref::sum_test {
namespace {

// The rule, implemented a second time from docs/NUMERICS.md with levels of a tree instead of a
// stack.
float SumByTheRule(const std::vector<float>& x) {
  if (x.size() < 32) {
    float total = 0;
    for (float value : x) total = total + value;
    return total;
  }
  std::vector<float> level;
  for (size_t begin = 0; begin < x.size(); begin += 1024) {
    std::vector<float> chains(16, 0.0f);
    for (size_t chain = 0; chain < 16; ++chain) {
      for (size_t i = begin + chain; i < std::min(x.size(), begin + 1024); i += 16)
        chains[chain] += x[i];
    }
    for (size_t distance : {8, 4, 2, 1}) {
      for (size_t chain = 0; chain < distance; ++chain) chains[chain] += chains[chain + distance];
    }
    level.push_back(chains[0]);
  }
  while (level.size() > 1) {
    std::vector<float> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = next;
  }
  return level[0];
}

std::vector<float> Numbers(size_t n) {
  std::vector<float> x(n);
  uint32_t state = 12345;
  for (float& value : x) {
    state = state * 1664525u + 1013904223u;
    value = (static_cast<float>(state >> 8) / 16777216.0f - 0.5f) *
            static_cast<float>(1 << (state % 17));
  }
  return x;
}

TEST(OrderedSum, FollowsTheRuleAtEveryLengthWhereItsShapeChanges) {
  for (size_t n :
       {0,    1,    2,    15,   16,   17,   31,   32,   33,   63,   1023,      1024,
        1025, 1040, 2047, 2048, 2049, 3072, 3073, 5000, 7168, 7169, 11 * 1024, 11 * 1024 + 5}) {
    const std::vector<float> x = Numbers(n);
    EXPECT_EQ(Sum(x.data(), n), SumByTheRule(x)) << n;
  }
}

TEST(OrderedSum, IsNotTheChainItReplaces) {
  const std::vector<float> x = Numbers(4096);
  float chain = 0;
  for (float value : x) chain += value;
  EXPECT_NE(Sum(x.data(), x.size()), chain);
}

TEST(Dot, FusesItsProducts) {
  // 2^-12 + 1 squared minus 1 keeps 2^-24 only if the product is not rounded before the addition.
  const float a = 1.0f + std::ldexp(1.0f, -12);
  const std::vector<float> x = {-1.0f, a}, y = {1.0f, a};
  const float dot = Dot<float>(
      2, [&](size_t i) { return x[i]; }, [&](size_t i) { return y[i]; });
  EXPECT_EQ(dot, std::ldexp(1.0f, -11) + std::ldexp(1.0f, -24));
}

TEST(PairwiseFold, HandlesNothing) { EXPECT_EQ(PairwiseFold<float>().Total(), 0.0f); }

}  // namespace
}  // namespace kinglet::ref::sum_test
