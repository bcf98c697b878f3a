#include "runtime/lower/lower.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "format/writer.h"
#include "tests/support/model_builder.h"

namespace kinglet {
namespace {

std::shared_ptr<const ModelFile> File(const TinyOptions& options) {
  return *ModelFile::FromBytes(*SerialiseModel(TinyMicronet(options)));
}

template <class T>
size_t CountOps(const Plan& plan) {
  size_t count = 0;
  for (const Step& step : plan.steps) count += std::holds_alternative<T>(step.op);
  return count;
}

TEST(Lower, AQuantisedLayerHasItsSevenQuantisersAndTheModelOneMore) {
  TinyOptions options;
  options.quantised = true;
  options.layers = 3;
  const auto file = File(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  // Six are steps of their own, the attention weights' is part of the attention.
  EXPECT_EQ(CountOps<Quantise>(*plan), 3u * 6 + 1);
  EXPECT_EQ(CountOps<WindowAttention>(*plan), 3u);
  for (const Step& step : plan->steps) {
    if (const auto* attention = std::get_if<WindowAttention>(&step.op)) {
      EXPECT_TRUE(attention->weights_quantiser.has_value());
    }
  }
}

TEST(Lower, AFloatModelHasNone) {
  const auto file = File({});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(CountOps<Quantise>(*plan), 0u);
  EXPECT_FALSE(plan->cache.has_value());
  EXPECT_EQ(CountOps<CacheAppend>(*plan), 0u);
}

TEST(Lower, ClustersCoverTheVocabularyInOrder) {
  for (int bins : {1, 2, 3}) {
    TinyOptions options;
    options.bins = bins;
    options.vocabulary_size = 50;
    const auto file = File(options);
    const auto plan = Lower(*file);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->clusters.size(), static_cast<size_t>(bins));
    uint32_t next = 0;
    for (const ClusterPlan& cluster : plan->clusters) {
      EXPECT_EQ(cluster.first, next);
      next += cluster.size;
    }
    EXPECT_EQ(next, 50u);
    EXPECT_EQ(plan->buffer(plan->clusters[0].logits).count, plan->clusters[0].size + bins - 1u);
  }
}

TEST(Lower, NamesAreUniqueSoReportsCanBeReadAndBuffersFound) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = 3;
  const auto file = File(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  std::set<std::string> steps, buffers;
  for (const Step& step : plan->steps) EXPECT_TRUE(steps.insert(step.name).second) << step.name;
  for (const BufferSpec& buffer : plan->buffers)
    EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
}

TEST(Lower, TheCacheRemembersBeforeTheTokenIsRead) {
  TinyOptions options;
  options.cache_capacity = 3;
  const auto file = File(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(std::holds_alternative<CacheAppend>(plan->steps[plan->context.begin].op));
  ASSERT_TRUE(plan->cache.has_value());
  EXPECT_EQ(plan->cache->capacity, 3u);
}

}  // namespace
}  // namespace kinglet
