// Which clusters a rank computes. tests/runtime/session_tokens_test.cc checks its answers.
#include "runtime/queries/rank.h"

#include <gtest/gtest.h>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::rank_test {
namespace {

TEST(Rank, DoesNotComputeTailsThatCannotMatter) {
  const auto session = StartTiny(WithImprobableTails());
  ASSERT_TRUE(session->StepToken(0).ok());
  EXPECT_LE(*session->Rank(1), 14u);
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  EXPECT_GT(*session->Rank(39), 14u);  // of the last tail, which the other one may surpass
  EXPECT_TRUE(session->clusters_opened().Contains(2));
}

TEST(Rank, OfEqualTokensIsByLowerIdFirst) {
  ModelDraft draft = WithImprobableTails();
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  for (float& value : FloatsOf(draft, *softmax->head_table)) value = 0.25f;
  for (float& value : FloatsOf(draft, *softmax->head_bias)) value = 1.0f;
  const auto session = StartTiny(draft);
  ASSERT_TRUE(session->StepToken(5).ok());
  for (uint32_t id = 0; id < softmax->head_size; ++id) EXPECT_EQ(*session->Rank(id), id + 1);
}

}  // namespace
}  // namespace kinglet::rank_test
