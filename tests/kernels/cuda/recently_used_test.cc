// The least-recently-used cache.
#include "kernels/cuda/recently_used.h"

#include <gtest/gtest.h>

#include <memory>

namespace kinglet::cuda::recently_used_test {
namespace {

TEST(RecentlyUsed, RemembersWhatItWasGiven) {
  RecentlyUsed<int, int> values(3);
  EXPECT_EQ(values.Of(7), 0);
  values.Of(7) = 70;
  values.Of(8) = 80;
  EXPECT_EQ(values.Of(7), 70);
  EXPECT_EQ(values.Of(8), 80);
  values.Clear();
  EXPECT_EQ(values.Of(7), 0);
}

TEST(RecentlyUsed, WhatWasNotUsedForLongestMakesRoom) {
  RecentlyUsed<int, std::shared_ptr<int>> values(3);
  const auto kept = std::make_shared<int>(1), lost = std::make_shared<int>(2);
  values.Of(1) = kept;
  values.Of(2) = lost;
  values.Of(3);
  for (int other = 4; other < 50; ++other) {
    EXPECT_EQ(values.Of(1), kept);  // used again and again
    EXPECT_EQ(lost.use_count(), other == 4 ? 2 : 1);
    values.Of(other);
  }
  EXPECT_EQ(values.Of(2), nullptr);
}

}  // namespace
}  // namespace kinglet::cuda::recently_used_test
