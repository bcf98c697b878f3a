// Which clusters the log-probability of a word computes.
#include "runtime/queries/word_probabilities.h"

#include <gtest/gtest.h>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::word_probabilities_test {
namespace {

TEST(Distribution, OneWordNeedsTheHeadAndItsOwnTail) {
  const auto session = StartTiny(TinyMicronet(SmallCacheOptions()));
  ASSERT_TRUE(session->StepToken(0).ok());
  ASSERT_TRUE(session->LogProbability(0).ok());
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  ASSERT_TRUE(session->LogProbability(39).ok());
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 2}));
  ASSERT_TRUE(session->StepToken(0).ok());
  EXPECT_EQ(session->clusters_opened(), ClusterSet());
}

}  // namespace
}  // namespace kinglet::word_probabilities_test
