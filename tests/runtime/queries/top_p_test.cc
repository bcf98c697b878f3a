// Which clusters a nucleus computes, and where it ends. tests/runtime/session_tokens_test.cc checks
// its answers.
#include "runtime/queries/top_p.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::top_p_test {
namespace {

TEST(TopP, DoesNotComputeTailsThatCannotMatter) {
  const auto session = StartTiny(WithImprobableTails());
  ASSERT_TRUE(session->StepToken(0).ok());
  EXPECT_GE(session->TopP(0.3)->size(), 1u);
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  EXPECT_EQ(session->TopP(1)->size(), 40u);
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 1, 2}));
}

// Without its tails the head has equally probable tokens only.
TEST(TopP, EndsWithTheTokenThatReachesTheShare) {
  ModelDraft draft = TinyMicronet({.bins = 1, .vocabulary_size = 16});
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  for (float& value : FloatsOf(draft, *softmax->head_table)) value = 0.25f;
  for (float& value : FloatsOf(draft, *softmax->head_bias)) value = 1.0f;
  const auto session = StartTiny(draft);
  ASSERT_TRUE(session->StepToken(5).ok());
  // A token has a sixteenth, but for rounding.
  for (uint32_t n = 1; n <= 16; ++n) {
    const auto nucleus = session->TopP(n / 16.0 - 1e-6);
    ASSERT_TRUE(nucleus.ok());
    EXPECT_EQ(nucleus->size(), n);
    for (uint32_t i = 0; i < nucleus->size(); ++i) EXPECT_EQ((*nucleus)[i].id, i);
    EXPECT_EQ(session->TopP(std::min(1.0, n / 16.0 + 1e-6))->size(), std::min(16U, n + 1));
  }
}

}  // namespace
}  // namespace kinglet::top_p_test
