// The cache against a list, for each set, of the rows in order of use.
#include "kernels/row_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>
#include <vector>

#include "converters/splitmix.h"

namespace kinglet::row_cache_test {
namespace {

TEST(RowCacheShape, HoldsAtMostAsManyRows) {
  for (const uint32_t tokens : {1U, 2U, 7U, 23U, 1000U}) {
    for (const uint32_t rows : {1U, 2U, 7U, 8U, 9U, 15U, 16U, 100U, 5000U}) {
      const RowCacheShape shape = RowCacheShape::Of(rows, tokens);
      EXPECT_LE(shape.rows(), rows);
      EXPECT_GE(2 * shape.rows(), std::min(rows, tokens));
      if (rows >= tokens) {
        EXPECT_EQ(shape.rows(), tokens);
      }
    }
  }
  EXPECT_EQ(RowCacheShape::Of(UINT32_MAX, 1U << 30).index_size(), uint64_t{1} << 31);
}

TEST(RowCache, TheRowAskedForTheLongestAgoGivesWay) {
  SplitMix64 random(5);
  for (const uint32_t rows : {1U, 2U, 3U, 8U, 17U, 40U, 100U}) {
    constexpr uint32_t kTokens = 41;
    const RowCacheShape shape = RowCacheShape::Of(rows, kTokens);
    std::vector<uint32_t> memory(shape.index_size());
    std::vector<std::list<uint32_t>> sets(shape.sets);  // most recent first
    std::vector<uint32_t> row_of(shape.rows(), UINT32_MAX);
    for (int call = 0; call < 2000; ++call) {
      const auto token = static_cast<uint32_t>(random.Below(random.Below(2) == 0 ? 5 : kTokens));
      std::list<uint32_t>& set = sets[token % shape.sets];
      const bool known = std::find(set.begin(), set.end(), token) != set.end();
      set.remove(token);
      set.push_front(token);
      if (set.size() > shape.ways) set.pop_back();

      RowCache cache(shape, memory.data());
      const auto found = cache.Find(token);
      ASSERT_EQ(found.has_value(), known) << rows << " rows, call " << call;
      const uint64_t slot = found ? *found : cache.Take(token);
      ASSERT_LT(slot, shape.rows());
      if (found) {
        ASSERT_EQ(row_of[slot], token) << "another word's row";
      }
      row_of[slot] = token;
    }
  }
}

TEST(RowCache, RoomForAllTokensLosesNone) {
  const RowCacheShape shape = RowCacheShape::Of(41, 41);
  std::vector<uint32_t> memory(shape.index_size());
  RowCache cache(shape, memory.data());
  std::set<uint64_t> slots;
  for (uint32_t token = 0; token < 41; ++token) {
    EXPECT_FALSE(cache.Find(token));
    slots.insert(cache.Take(token));
  }
  EXPECT_EQ(slots.size(), 41U);
  for (uint32_t token = 0; token < 41; ++token) EXPECT_TRUE(cache.Find(token));
}

}  // namespace
}  // namespace kinglet::row_cache_test
