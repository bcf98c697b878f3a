#include "converters/recipe/folded_parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace kinglet::folded_parts_test {
namespace {

using Values = std::vector<float>;

TEST(FoldBatchNorm, IsOneScaleAndOneShift) {
  const Values mean = {3, -1}, variance = {15, 3}, gain = {2, 5}, offset = {7, 0.5F};
  const auto folded = FoldBatchNorm(mean, variance, gain, offset, 1);
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->scale, (Values{0.5F, 2.5F}));
  EXPECT_EQ(folded->shift, (Values{5.5F, 3}));
  const auto plain = FoldBatchNorm(mean, variance, {}, {}, 1);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->scale, (Values{0.25F, 0.5F}));
  EXPECT_EQ(plain->shift, (Values{-0.75F, 0.5F}));
  EXPECT_TRUE(FoldBatchNorm({}, {}, {}, {}, 1)->scale.empty());
}

TEST(FoldBatchNorm, NeedsVariancesAboveZero) {
  const Values mean = {3, -1}, variance = {1, 0};
  EXPECT_FALSE(FoldBatchNorm(mean, variance, {}, {}, 0));
  EXPECT_FALSE(FoldBatchNorm(mean, variance, {}, {}, -1));
  EXPECT_TRUE(FoldBatchNorm(mean, variance, {}, {}, 1e-5));
}

TEST(JoinHead, WordsAndClustersReadTheirOwnColumns) {
  // Two words, one column; a hidden state of three; two clusters.
  const Values table = {5, 6}, projection = {1, 2, 3}, clusters = {7, 8, 9, 10, 11, 12};
  const JointHead head = JoinHead(table, projection, clusters, 1, 2);
  EXPECT_EQ(head.words, (Values{5, 0, 0, 6, 0, 0}));
  EXPECT_EQ(head.clusters, (Values{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(head.projection, (Values{1, 2, 3, 7, 8, 9, 10, 11, 12}));
}

}  // namespace
}  // namespace kinglet::folded_parts_test
