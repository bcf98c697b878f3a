// Which clusters the log-probability of a token computes.
#include "runtime/queries/token_probabilities.h"

#include <gtest/gtest.h>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::token_probabilities_test {
namespace {

TEST(Distribution, OneTokenNeedsTheHeadAndItsOwnTail) {
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
}  // namespace kinglet::token_probabilities_test
