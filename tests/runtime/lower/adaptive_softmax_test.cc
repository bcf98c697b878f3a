#include <gtest/gtest.h>

#include "tests/runtime/lower/lowering.h"

namespace kinglet {
namespace {

TEST(LowerSoftmax, ClustersCoverTheVocabularyInOrder) {
  for (int bins : {1, 2, 3}) {
    TinyOptions options;
    options.bins = bins;
    options.vocabulary_size = 50;
    const auto file = TinyFile(options);
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

TEST(LowerSoftmax, ATailsLogitIsItsClusterRow) {
  TinyOptions options;
  options.vocabulary_size = 50;
  const auto file = TinyFile(options);
  const auto* block = FindBlock<AdaptiveSoftmax>(file->description());
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(block->tails.size(), 2u);
  // Reversed, as MicroNet's files have them.
  EXPECT_EQ(plan->clusters[1].parent_logit, block->head_size + 1);
  EXPECT_EQ(plan->clusters[2].parent_logit, block->head_size + 0);
}

TEST(LowerSoftmax, OnlyAProjectedHiddenStateIsRoundedToFixedPoint) {
  TinyOptions options;
  options.quantised = true;
  const auto file = TinyFile(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  size_t rounded = 0;
  for (const MatVec* product : OpsOf<MatVec>(*plan)) {
    if (product->input == TailInput::kAsIs) continue;
    ++rounded;
    EXPECT_EQ(plan->buffer(product->x).element, Element::kReal);
  }
  EXPECT_EQ(rounded, 2u);
}

}  // namespace
}  // namespace kinglet
