#include "runtime/queries/cached_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cache_weight.h"
#include "tests/support/model_builder.h"

namespace kinglet::cached_tokens_test {
namespace {

constexpr uint32_t kFar = std::numeric_limits<uint32_t>::max() - 1;

TEST(CachedTokens, WithoutRoomATableIsEmpty) {
  CachedTokens<float> tokens(0, {0, 7});
  EXPECT_LE(CachedTokens<float>::Bytes(0, 2), 64u);
  EXPECT_EQ(tokens.WeightOf(3), 0.0f);
  tokens.Clear();
  tokens.Set({}, {});
  tokens.ForEachOf(1, [](uint32_t, float) { ADD_FAILURE(); });
}

// Compares the table of a ring of pairs, like a stream's cache, with a map filled for each token.
class Ring {
 public:
  Ring(uint32_t pairs, std::vector<uint32_t> firsts)
      : firsts_(std::move(firsts)), table_(pairs, firsts_), tokens_(pairs), weights_(pairs) {}

  CachedTokens<double>& table() { return table_; }
  void Put(uint64_t position, uint32_t token) { tokens_[position % tokens_.size()] = token; }
  void Check(size_t stored, TestRandom& random) {
    std::map<uint32_t, double> expected;
    for (size_t i = 0; i < stored; ++i) {
      weights_[i] = random.Below(5) == 0 ? 0.0 : CacheWeight(random.Unit());
      if (weights_[i] > 0) expected[tokens_[i]] += weights_[i];
    }
    table_.Set(std::span(tokens_).first(stored), std::span(weights_).first(stored));
    size_t found = 0;
    for (size_t cluster = 0; cluster < firsts_.size(); ++cluster) {
      table_.ForEachOf(cluster, [&](uint32_t id, double weight) {
        ++found;
        ASSERT_GE(id, firsts_[cluster]);
        if (cluster + 1 < firsts_.size()) {
          ASSERT_LT(id, firsts_[cluster + 1]);
        }
        ASSERT_EQ(expected.count(id), 1u);
        ASSERT_EQ(weight, expected[id]);
        ASSERT_EQ(table_.WeightOf(id), weight);
      });
    }
    EXPECT_EQ(found, expected.size());
    for (size_t i = 0; i < stored; ++i) {
      const auto at = expected.find(tokens_[i]);
      EXPECT_EQ(table_.WeightOf(tokens_[i]), at == expected.end() ? 0.0 : at->second);
    }
    EXPECT_EQ(table_.WeightOf(std::numeric_limits<uint32_t>::max()), 0.0);
  }

 private:
  std::vector<uint32_t> firsts_;
  CachedTokens<double> table_;
  std::vector<uint32_t> tokens_;
  std::vector<double> weights_;
};

TEST(CachedTokens, AddUpWeightsAsAMapDoes) {
  TestRandom random(1);
  for (const uint32_t pairs : {1u, 2u, 7u, 500u}) {
    for (const uint32_t vocabulary : {3u, 100u, kFar}) {
      // The second cluster is empty.
      Ring ring(pairs, {0, vocabulary / 3, vocabulary / 3, vocabulary / 2});
      for (uint64_t position = 0; position < 3 * pairs + 20; ++position) {
        ring.Put(position, random.Below(vocabulary));
        ASSERT_NO_FATAL_FAILURE(ring.Check(std::min<uint64_t>(position + 1, pairs), random));
      }
    }
  }
}

// Every token is a new token: more tokens than the table has room for.
TEST(CachedTokens, ManyMoreTokensThanPairs) {
  TestRandom random(2);
  Ring ring(5, {0});
  for (uint32_t position = 0; position < 4000; ++position) {
    ring.Put(position, kFar - position * 977);
    ASSERT_NO_FATAL_FAILURE(ring.Check(std::min(position + 1, 5u), random));
  }
}

// As after a reset of the stream, or when the table was another stream's.
TEST(CachedTokens, OtherPairsThanLastTime) {
  TestRandom random(3);
  Ring ring(40, {0, 50});
  for (int round = 0; round < 200; ++round) {
    for (uint32_t i = 0; i < 40; ++i) ring.Put(i, random.Below(100));
    if (round % 3 == 0) ring.table().Clear();
    ASSERT_NO_FATAL_FAILURE(ring.Check(random.Below(41), random));
  }
}

}  // namespace
}  // namespace kinglet::cached_tokens_test
