// Tokens at the borders of clusters, with and without tokens in the head.
#include "kernels/cluster_of.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kinglet::cluster_of_test {
namespace {

uint32_t Find(const std::vector<uint32_t>& firsts, uint32_t token) {
  return ClusterOf(token, static_cast<uint32_t>(firsts.size()),
                   [&](uint32_t i) { return firsts[i]; });
}

TEST(ClusterOf, IsTheLastThatBeginsAtTheTokenOrBefore) {
  const std::vector<uint32_t> firsts = {0, 5, 6, 20, 1000};
  for (uint32_t token = 0; token < 1010; ++token) {
    uint32_t expected = 0;
    while (expected + 1 < firsts.size() && firsts[expected + 1] <= token) ++expected;
    EXPECT_EQ(Find(firsts, token), expected) << token;
  }
  EXPECT_EQ(Find({0}, 7), 0u);
}

TEST(ClusterOf, SkipsClustersWithoutTokens) {
  EXPECT_EQ(Find({0, 0, 4}, 0), 1u);
  EXPECT_EQ(Find({0, 3, 3, 3, 9}, 3), 3u);
}

}  // namespace
}  // namespace kinglet::cluster_of_test
