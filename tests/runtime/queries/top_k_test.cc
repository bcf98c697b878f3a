// Which tails a top-k computes and which it skips. tests/runtime/session_test.cc checks its
// answers.
#include "runtime/queries/top_k.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/queries/tiny_session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::top_k_test {
namespace {

TEST(Distribution, TopKDoesNotComputeTailsThatCannotMatter) {
  const auto session = StartTiny(WithImprobableTails());
  ASSERT_TRUE(session->StepToken(0).ok());
  EXPECT_EQ(session->clusters_opened(), ClusterSet());
  ASSERT_EQ(session->TopK(3)->size(), 3u);
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  ASSERT_EQ(session->TopK(40)->size(), 40u);
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 1, 2}));
}

TEST(Distribution, ACachedTokenOpensItsTailWhenItCouldMatter) {
  ModelDraft draft = WithImprobableTails();
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  const uint32_t rare = softmax->tails[1].first + 1;
  const auto session = StartTiny(draft);
  for (uint32_t id : {0u, rare, 0u, rare, 0u}) ASSERT_TRUE(session->StepToken(id).ok());
  const auto top = session->TopK(5);
  ASSERT_TRUE(top.ok());
  EXPECT_TRUE(session->clusters_opened().Contains(2));
  EXPECT_FALSE(session->clusters_opened().Contains(1));
  // e^-60 without the cache; with the cache, lambda times about a half.
  EXPECT_GT(*session->LogProbability(rare), -10);
}

TEST(Distribution, EqualTokensComeByLowerIdFirst) {
  ModelDraft draft = TinyMicronet(SmallCacheOptions());
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  // All rows of the head alike: all its tokens are equally probable.
  for (float& value : FloatsOf(draft, *softmax->head_table)) value = 0.25f;
  for (float& value : FloatsOf(draft, *softmax->head_bias)) value = 1.0f;
  for (float& value : FloatsOf(draft, *softmax->cluster_bias)) value = -60.0f;
  const auto session = StartTiny(draft);
  ASSERT_TRUE(session->StepToken(5).ok());
  const auto top = session->TopK(softmax->head_size);
  ASSERT_TRUE(top.ok());
  for (uint32_t i = 0; i < softmax->head_size; ++i) EXPECT_EQ((*top)[i].id, i);
}

// A lane that is asked alone keeps its table of cached tokens from token to token, a lane that
// shares the table does not: its tokens come in another order.
TEST(Distribution, TheWorkOfTopKDependsOnNoOrderOfCachedTokens) {
  TinyOptions options = SmallCacheOptions();
  options.cache_capacity = 60;
  options.vocabulary_size = 400;
  const auto model = Open(TinyMicronet(options), "cpu");
  const auto alone = Start(model), sharing = Start(model, {.lanes = 2});
  const std::vector<uint32_t> ids = Tokens(150, 400);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(alone->StepToken(ids[i]).ok());
    ASSERT_TRUE(sharing->StepToken(ids[i], 0).ok());
    ASSERT_TRUE(sharing->StepToken(ids[ids.size() - 1 - i], 1).ok());
    for (const uint32_t k : {1u, 3u, 9u}) {
      ASSERT_TRUE(alone->TopK(k).ok());
      ASSERT_TRUE(sharing->TopK(k, 1).ok());
      ASSERT_TRUE(sharing->TopK(k, 0).ok());
      const OperationTally expected = alone->last_work().arithmetic;
      const OperationTally found = sharing->last_work(0).arithmetic;
      ASSERT_EQ(found.multiplications, expected.multiplications) << i << ", " << k;
      ASSERT_EQ(found.additions, expected.additions) << i << ", " << k;
      ASSERT_EQ(found.others, expected.others) << i << ", " << k;
    }
  }
}

}  // namespace
}  // namespace kinglet::top_k_test
