#include "runtime/queries/token_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace kinglet::token_set_test {
namespace {

std::vector<uint32_t> TokensOf(const TokenSet& set, uint32_t first, uint32_t count) {
  std::vector<uint32_t> ids;
  set.ForEachOf(first, count, [&ids](uint32_t id) { ids.push_back(id); });
  return ids;
}

TEST(TokenSet, HasEachTokenOnceInTheOrderOfIds) {
  const std::vector<uint32_t> ids = {129, 0, 63, 64, 0, 127, 129};
  TokenSet set(130, ids);
  EXPECT_EQ(set.size(), 5u);
  EXPECT_EQ(TokensOf(set, 0, 130), (std::vector<uint32_t>{0, 63, 64, 127, 129}));
  EXPECT_EQ(TokensOf(set, 63, 65), (std::vector<uint32_t>{63, 64, 127}));
  EXPECT_EQ(TokensOf(set, 65, 62), std::vector<uint32_t>());
  EXPECT_EQ(TokensOf(set, 130, 0), std::vector<uint32_t>());
  EXPECT_EQ(set.CountOf(64, 66), 3u);
  EXPECT_TRUE(set.HasAnyOf(1, 63));
  EXPECT_FALSE(set.HasAnyOf(1, 62));
  EXPECT_FALSE(set.HasAnyOf(65, 62));
  EXPECT_TRUE(set.HasAnyOf(128, 2));
  EXPECT_FALSE(set.HasAnyOf(0, 0));
  set.Remove(63);
  set.Remove(62);
  EXPECT_EQ(set.size(), 4u);
  EXPECT_FALSE(set.Contains(63));
  EXPECT_TRUE(set.Contains(64));
  EXPECT_EQ(TokenSet(0).size(), 0u);
}

}  // namespace
}  // namespace kinglet::token_set_test
