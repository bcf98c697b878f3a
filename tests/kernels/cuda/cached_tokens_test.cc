// The table of a cache's tokens against sums over all pairs.
#include "kernels/cuda/cached_tokens.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::cuda::internal::cached_tokens_test {
namespace {

struct Case {
  uint32_t capacity, pairs, different;
};

void ExpectSums(const Case& of, Order order) {
  TestRandom random(of.capacity + of.pairs);
  std::vector<uint32_t> tokens(of.capacity);
  std::vector<float> weights(of.capacity);
  std::map<uint32_t, uint64_t> sums;
  for (uint32_t i = 0; i < of.pairs; ++i) {
    // Multiples of a power of two, which would all begin at one entry were they not spread.
    tokens[i] = random.Below(of.different) << 16;
    weights[i] = random.Below(4) == 0 ? 0.0f : CacheWeight(0.5f * (1.0f + random.Signed()));
    if (weights[i] > 0.0f) sums[tokens[i]] += UnitsOf(weights[i]);
  }
  RankedTokensPlan plan{};
  plan.cache.present = true;
  plan.cache.capacity = of.capacity;
  plan.cache.first_position = 1;
  plan.cache.tokens = {Space::kScratch, 0};
  plan.cache.weights = {Space::kState, 0};
  Lane lane{};
  lane.scratch = reinterpret_cast<std::byte*>(tokens.data());
  lane.state = reinterpret_cast<std::byte*>(weights.data());
  lane.position = of.pairs;
  std::vector<uint64_t> memory(CachedTokens::Bytes(plan) / sizeof(uint64_t) + 1, ~uint64_t{0} / 3);
  const Block block(kBlockThreads, reinterpret_cast<std::byte*>(memory.data()), order);
  SharedMemory shared(block);
  CachedTokens table(plan, shared);
  table.Fill(Work{&lane, 1, 0, block}, lane);
  size_t found = 0;
  for (uint32_t i = 0; i < table.size(); ++i) {
    if (table.TokenAt(i) == CachedTokens::kNone) continue;
    ++found;
    ASSERT_EQ(sums.count(table.TokenAt(i)), 1u);
    EXPECT_EQ(table.WeightAt(i), WeightOfUnits<float>(sums[table.TokenAt(i)]));
    EXPECT_EQ(table.Find(table.TokenAt(i)), i);
  }
  EXPECT_EQ(found, sums.size());
  for (uint32_t i = 0; i < of.different; ++i) {
    EXPECT_EQ(table.Holds(i << 16), sums.count(i << 16) == 1) << i;
    EXPECT_FALSE(table.Holds((i << 16) + 1));
  }
}

TEST(CachedTokens, HaveTheSumsOfTheirWeights) {
  for (const Order order : {Order::kForward, Order::kBackward}) {
    for (const Case& of : {Case{1, 1, 1},
                           {3, 0, 5},
                           {9, 9, 2},
                           {9, 9, 65536},
                           {3000, 2999, 500},
                           {4096, 4096, 65535}}) {
      ExpectSums(of, order);
    }
  }
}

TEST(CachedTokens, WithoutACacheThereAreNone) {
  RankedTokensPlan plan{};
  EXPECT_EQ(CachedTokens::Bytes(plan), 0u);
}

}  // namespace
}  // namespace kinglet::cuda::internal::cached_tokens_test
