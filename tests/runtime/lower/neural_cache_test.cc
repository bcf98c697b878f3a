#include <gtest/gtest.h>

#include "kernels/backend.h"
#include "tests/runtime/lower/lowering.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::neural_cache_test {
namespace {

TEST(LowerCache, TheCacheRemembersBeforeTheTokenIsRead) {
  TinyOptions options;
  options.cache_capacity = 3;
  const auto file = TinyFile(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(std::holds_alternative<CacheAppend>(plan->nodes[plan->context.begin].op));
  ASSERT_TRUE(plan->cache.has_value());
  EXPECT_EQ(plan->cache->capacity, 3u);
}

TEST(LowerCache, TheFirstPositionFollowsTheStart) {
  for (const CacheStart start : {CacheStart::kFirstPair, CacheStart::kPastCapacity}) {
    const auto bytes = SerialiseModel(TinyRecurrent({.cache_capacity = 7, .cache_start = start}));
    const auto file = *ModelFile::FromBytes(*bytes);
    const auto plan = Lower(*file);
    ASSERT_TRUE(plan.ok());
    const uint64_t first = start == CacheStart::kFirstPair ? 1 : 8;
    EXPECT_EQ(plan->cache->first_position, first);
    EXPECT_EQ(OpsOf<CacheWeights>(*plan)[0]->first_position, first);
  }
}

TEST(LowerCache, KeysAreWhatTheHiddenStateIsMadeOf) {
  for (bool quantised : {false, true}) {
    TinyOptions options;
    options.cache_capacity = 5;
    options.quantised = quantised;
    options.width = 36;  // 64 codes with their padding
    const auto file = TinyFile(options);
    const auto plan = Lower(*file);
    ASSERT_TRUE(plan.ok());
    const auto append = OpsOf<CacheAppend>(*plan);
    ASSERT_EQ(append.size(), 1u);
    const BufferSpec& keys = plan->buffer(append[0]->keys);
    EXPECT_EQ(keys.count, 5u * options.width);
    EXPECT_EQ(keys.element, plan->buffer(append[0]->hidden).element);
    EXPECT_TRUE(keys.state);
    EXPECT_EQ(quantised, keys.element == Element::kCode16);
  }
}

TEST(LowerCache, KeysThatFitTakeNineBits) {
  for (const uint32_t width : {37u, 64u, 128u}) {
    TinyOptions options;
    options.cache_capacity = 5;
    options.quantised = true;
    options.width = width;
    const auto file = TinyFile(options);
    const auto plan = Lower(*file);
    ASSERT_TRUE(plan.ok());
    const BufferSpec& keys = plan->buffer(OpsOf<CacheAppend>(*plan)[0]->keys);
    EXPECT_EQ(keys.element, Element::kCode9);
    EXPECT_EQ(keys.row, width);
    EXPECT_EQ(keys.count, uint64_t{5} * width);
    EXPECT_EQ(BytesOf(keys, keys.count, 4), uint64_t{5} * ((width + 63) / 64) * 72);
  }
}

}  // namespace
}  // namespace kinglet::neural_cache_test
