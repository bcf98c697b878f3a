// Which clusters queries about sets compute. tests/runtime/session_tokens_test.cc checks their
// answers.
#include "runtime/queries/set_queries.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::set_queries_test {
namespace {

TEST(SetQueries, DoNotComputeClustersThatCannotMatter) {
  const auto session = StartTiny(WithImprobableTails());
  ASSERT_TRUE(session->StepToken(0).ok());
  const TokenSet none(40), some(40, std::vector<uint32_t>{1, 2, 39});
  EXPECT_TRUE(session->TopKOf(none, 3)->empty());
  EXPECT_TRUE(session->TopKOf(some, 0)->empty());
  EXPECT_EQ(*session->ProbabilityOf(none), 0);
  EXPECT_EQ(session->clusters_opened(), ClusterSet());
  EXPECT_EQ(session->TopKOf(some, 2)->size(), 2u);
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  EXPECT_EQ(session->TopKOf(some, 3)->back().id, 39u);
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 2}));
}

}  // namespace
}  // namespace kinglet::set_queries_test
