#include "runtime/cached_words.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet {
namespace {

TEST(CachedWords, WithoutRoomThereAreNone) {
  CachedWords<float> words(0);
  EXPECT_EQ(CachedWords<float>::Bytes(0), 0u);
  EXPECT_EQ(words.WeightOf(3), 0.0f);
  words.Clear();
  EXPECT_TRUE(words.begin() == words.end());
}

TEST(CachedWords, AddUpWeightsAsAMapDoes) {
  TestRandom random(1);
  for (const uint32_t capacity : {1u, 2u, 7u, 1000u}) {
    CachedWords<double> words(capacity);
    for (int round = 0; round < 3; ++round) {
      words.Clear();
      // As many distinct words as there may be, near each other and far apart.
      std::vector<uint32_t> ids = {std::numeric_limits<uint32_t>::max() - 1};
      while (ids.size() < capacity) {
        ids.push_back(round == 0 ? static_cast<uint32_t>(ids.size()) : random.Below(1u << 31));
      }
      std::map<uint32_t, double> expected;
      std::vector<uint32_t> order;
      for (uint32_t i = 0; i < 4 * capacity; ++i) {
        const uint32_t id = ids[random.Below(capacity)];
        const double weight = 1 + random.Unit();
        if (expected.find(id) == expected.end()) order.push_back(id);
        expected[id] += weight;
        words.Add(id, weight);
      }
      size_t n = 0;
      for (const auto& word : words) {
        ASSERT_LT(n, order.size());
        EXPECT_EQ(word.id, order[n++]);
        EXPECT_EQ(word.weight, expected[word.id]);
        EXPECT_EQ(words.WeightOf(word.id), word.weight);
      }
      EXPECT_EQ(n, order.size());
      EXPECT_EQ(words.WeightOf(std::numeric_limits<uint32_t>::max()), 0.0);
    }
  }
}

}  // namespace
}  // namespace kinglet
