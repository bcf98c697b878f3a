#include <gtest/gtest.h>

#include <optional>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/softmax_builder.h"

namespace kinglet::adaptive_softmax_test {
namespace {

std::shared_ptr<const ModelFile> FileWith(const TinySoftmax& softmax) {
  return *ModelFile::FromBytes(*SerialiseModel(TinyMicronetWith(softmax)));
}

TEST(LowerSoftmax, TheHeadsProjectionServesTokensAndClusters) {
  const auto file = FileWith({.head_columns = 3, .tail_input = TailInput::kFixedPoint15});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  const auto* block = FindBlock<AdaptiveSoftmax>(file->description());
  size_t readers = 0;
  std::optional<BufferId> projected;
  for (const MatVec* product : OpsOf<MatVec>(*plan)) {
    if (product->weight == *block->head_projection) {
      EXPECT_EQ(product->x, plan->hidden);
      projected = product->y;
    }
    if (product->weight == *block->head_table || product->weight == *block->cluster_weight) {
      EXPECT_EQ(product->x, projected);
      EXPECT_EQ(product->input, TailInput::kFixedPoint15);
      ++readers;
    }
  }
  EXPECT_EQ(readers, 2u);
}

TEST(LowerSoftmax, AHeadOfClustersAlone) {
  const auto file = FileWith({.head_size = 0, .tails = {4, 5, 6}});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->clusters.size(), 4u);
  EXPECT_EQ(plan->clusters[0].size, 0u);
  EXPECT_EQ(plan->buffer(plan->clusters[0].logits).count, 3u);
  EXPECT_EQ(plan->clusters[1].first, 0u);
}

TEST(LowerSoftmax, OneNormaliserMakesOneClusterOfAllTokens) {
  const auto file =
      FileWith({.tails = {4, 6, 1}, .reverse_rows = true, .normalisation = Normalisation::kWhole});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->clusters.size(), 1u);
  EXPECT_EQ(plan->clusters[0].size, 16u);
  EXPECT_EQ(plan->buffer(plan->clusters[0].logits).count, 16u);
  const auto added = OpsOf<AddScalar>(*plan);
  ASSERT_EQ(added.size(), 3u);
  uint32_t next = 5, row = 3;
  for (const AddScalar* op : added) {
    EXPECT_EQ(op->first, next);
    EXPECT_EQ(op->index, --row);
    next += op->count;
  }
  EXPECT_EQ(next, 16u);
  EXPECT_EQ(OpsOf<LogSumExp>(*plan).size(), 1u);
}

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
}  // namespace kinglet::adaptive_softmax_test
