// The best of many values and the union of many sets, in both orders of a thread block's threads.
#include "kernels/cuda/best_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::cuda::internal::best_tokens_test {
namespace {

class BestTokensTest : public ::testing::TestWithParam<Order> {
 protected:
  const Block block_{64, nullptr, GetParam()};
  TestRandom random_{2};
};
INSTANTIATE_TEST_SUITE_P(Orders, BestTokensTest,
                         ::testing::Values(Order::kForward, Order::kBackward));

TEST_P(BestTokensTest, TheUnionHasEveryBitAndNoOther) {
  std::vector<uint64_t> of_warps(kMaxWarps);
  for (const uint32_t n : {0u, 1u, 31u, 64u, 65u, 1000u}) {
    std::vector<uint64_t> sets(n);
    uint64_t expected = 0;
    for (uint64_t& set : sets) {
      set = uint64_t{1} << random_.Below(n < 40 ? 64 : 30);
      expected |= set;
    }
    EXPECT_EQ(BlockUnion(block_, n, of_warps.data(), [&](uint32_t i) { return sets[i]; }), expected)
        << n;
  }
}

TEST_P(BestTokensTest, TheBestAreTakenInOrderAndTiesByTheLowerId) {
  std::vector<RankedToken> of_warps(kMaxWarps);
  for (const uint32_t n : {1u, 40u, 200u}) {
    std::vector<float> values(n);
    for (float& value : values) value = -static_cast<float>(random_.Below(20));
    std::vector<uint32_t> order(n);
    for (uint32_t i = 0; i < n; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return values[a] > values[b]; });
    BestTokens best{};
    std::vector<float> left = values;
    // In an order that is not that of the ids, as in a hash table.
    TakeBest(
        block_, n, 10, of_warps.data(), best,
        [&](uint32_t i) {
          const uint32_t at = n - 1 - i;
          return RankedToken{left[at], 100 + at};
        },
        [&](uint32_t id) -> float& { return left[id - 100]; }, [](uint32_t) { return false; });
    ASSERT_EQ(best.count, std::min(n, 10u));
    for (uint32_t i = 0; i < best.count; ++i) {
      EXPECT_EQ(best.tokens[i].id, 100 + order[i]);
      EXPECT_EQ(best.tokens[i].value, values[order[i]]);
    }
  }
}

TEST_P(BestTokensTest, TokensJoinThoseThatAreThereAndSomeAreOmitted) {
  std::vector<RankedToken> of_warps(kMaxWarps);
  constexpr uint32_t kTokens = 150, kBest = 12;
  for (int round = 0; round < 5; ++round) {
    // Known tokens with ids below and above those of the new tokens, so that ties go either way.
    std::vector<RankedToken> all;
    BestTokens best{};
    for (uint32_t i = 0; i < 8; ++i) {
      const RankedToken known = {-static_cast<float>(random_.Below(9)), i < 4 ? i : 1000 + i};
      all.push_back(known);
      best.Insert(known, kBest);
    }
    std::vector<float> values(kTokens);
    uint32_t excluded = 0;
    for (uint32_t i = 0; i < kTokens; ++i) {
      values[i] = -static_cast<float>(random_.Below(40));
      if (i % 3 == 0) {
        ++excluded;
      } else {
        all.push_back({values[i], 100 + i});
      }
    }
    ASSERT_EQ(excluded, kTokens / 3);
    std::sort(all.begin(), all.end(),
              [](const RankedToken& a, const RankedToken& b) { return a.IsBetterThan(b); });
    TakeBest(
        block_, kTokens, kBest, of_warps.data(), best,
        [&](uint32_t i) {
          return RankedToken{values[i], 100 + i};
        },
        [&](uint32_t id) -> float& { return values[id - 100]; },
        [](uint32_t id) { return (id - 100) % 3 == 0; });
    ASSERT_EQ(best.count, kBest);
    for (uint32_t i = 0; i < kBest; ++i) {
      EXPECT_EQ(best.tokens[i].id, all[i].id) << i;
      EXPECT_EQ(best.tokens[i].value, all[i].value) << i;
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::internal::best_tokens_test
