#include "converters/passes/cache.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::cache_test {
namespace {

TEST(ChangeCache, NothingAskedNothingDone) {
  ModelDescription description = TinyMicronet({.cache_capacity = 5}).description;
  ASSERT_TRUE(ChangeCache({}, description).ok());
  const auto* cache = FindBlock<NeuralCache>(description);
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->capacity, 5U);
  description = TinyMicronet().description;
  ASSERT_TRUE(ChangeCache({}, description).ok());
  EXPECT_EQ(FindBlock<NeuralCache>(description), nullptr);
}

TEST(ChangeCache, KeepsWhatIsNotGiven) {
  ModelDescription description = TinyMicronet({.cache_capacity = 5}).description;
  const NeuralCache before = *FindBlock<NeuralCache>(description);
  ASSERT_TRUE(ChangeCache({.capacity = 9}, description).ok());
  const auto* cache = FindBlock<NeuralCache>(description);
  EXPECT_EQ(cache->capacity, 9U);
  EXPECT_EQ(cache->theta, before.theta);
  ASSERT_TRUE(ChangeCache({.theta = 0.75, .lambda = 0.5}, description).ok());
  EXPECT_EQ(cache->capacity, 9U);
  EXPECT_EQ(cache->theta, 0.75);
  EXPECT_EQ(cache->lambda, 0.5);
}

TEST(ChangeCache, ANewCacheStartsAsTheNetworkDoesAndAnOldOneKeepsItsOwn) {
  const CacheChange change{.capacity = 9, .theta = 0.5, .lambda = 0.25};
  const auto start_of = [&](ModelDescription description) {
    EXPECT_TRUE(ChangeCache(change, description).ok());
    return FindBlock<NeuralCache>(description)->start;
  };
  EXPECT_EQ(start_of(TinyMicronet().description), CacheStart::kFirstPair);
  EXPECT_EQ(start_of(TinyRecurrent().description), CacheStart::kPastCapacity);
  EXPECT_EQ(start_of(TinyMicronet({.cache_capacity = 5}).description), CacheStart::kFirstPair);
  EXPECT_EQ(
      start_of(
          TinyRecurrent({.cache_capacity = 5, .cache_start = CacheStart::kFirstPair}).description),
      CacheStart::kFirstPair);
}

TEST(ChangeCache, ZeroRemovesIt) {
  ModelDescription description = TinyMicronet({.cache_capacity = 5}).description;
  const size_t blocks = description.blocks.size();
  ASSERT_TRUE(ChangeCache({.capacity = 0}, description).ok());
  EXPECT_EQ(FindBlock<NeuralCache>(description), nullptr);
  EXPECT_EQ(description.blocks.size(), blocks - 1);
  EXPECT_TRUE(ChangeCache({.capacity = 0}, description).ok());
}

TEST(ChangeCache, ANewOneNeedsAllNumbers) {
  ModelDescription description = TinyMicronet().description;
  EXPECT_EQ(ChangeCache({.capacity = 3, .lambda = 0.5}, description).message(),
            "convert: cache: expected capacity, theta and lambda for a model without a cache, "
            "found a capacity and a lambda");
  EXPECT_EQ(FindBlock<NeuralCache>(description), nullptr);
  ASSERT_TRUE(ChangeCache({.capacity = 3, .theta = 0.25, .lambda = 0.5}, description).ok());
  ASSERT_NE(FindBlock<NeuralCache>(description), nullptr);
  EXPECT_EQ(FindBlock<NeuralCache>(description)->capacity, 3U);
}

}  // namespace
}  // namespace kinglet::cache_test
