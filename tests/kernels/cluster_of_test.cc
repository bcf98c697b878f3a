// Words at the borders of clusters, with and without words in the head.
#include "kernels/cluster_of.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace kinglet::cluster_of_test {
namespace {

uint32_t Find(const std::vector<uint32_t>& firsts, uint32_t word) {
  return ClusterOf(word, static_cast<uint32_t>(firsts.size()),
                   [&](uint32_t i) { return firsts[i]; });
}

TEST(ClusterOf, IsTheLastThatBeginsAtTheWordOrBefore) {
  const std::vector<uint32_t> firsts = {0, 5, 6, 20, 1000};
  for (uint32_t word = 0; word < 1010; ++word) {
    uint32_t expected = 0;
    while (expected + 1 < firsts.size() && firsts[expected + 1] <= word) ++expected;
    EXPECT_EQ(Find(firsts, word), expected) << word;
  }
  EXPECT_EQ(Find({0}, 7), 0u);
}

TEST(ClusterOf, SkipsClustersWithoutWords) {
  EXPECT_EQ(Find({0, 0, 4}, 0), 1u);
  EXPECT_EQ(Find({0, 3, 3, 3, 9}, 3), 3u);
}

}  // namespace
}  // namespace kinglet::cluster_of_test
