// The queries that look for tokens, against brute force, on every backend.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/session_fixture.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/word_query_check.h"

namespace kinglet::session_tokens_test {
namespace {

void ExpectAsBruteForce(const std::shared_ptr<const Model>& model, EmptyCache empty_cache) {
  WordQueryCheckOptions options;
  options.empty_cache = empty_cache;
  options.states = 12;
  options.every_word = 12;
  const auto text = Tokens(options.states, model->vocabulary_size());
  const auto report = CheckWordQueries(model, text, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->first_difference, "");
  for (const auto& [kind, check] : report->kinds) EXPECT_GT(check.made, 0u) << kind;
}

TEST(SessionTokens, AnswersAreThoseOfBruteForce) {
  for (const Backend& backend : Backends()) {
    for (const bool quantised : {false, true}) {
      for (const EmptyCache empty : {EmptyCache::kReference, EmptyCache::kNormalised}) {
        SCOPED_TRACE(std::string(backend.name) + (quantised ? ", quantised" : ""));
        ExpectAsBruteForce(Open(TinyMicronet(WholeOptions(quantised)), std::string(backend.name)),
                           empty);
      }
    }
  }
}

// Tiles of logits, a head whose last tile also has logits of clusters, no cache, one cluster.
TEST(SessionTokens, AnswersOfLargeClustersAreThoseOfBruteForce) {
  TinyOptions options;
  options.vocabulary_size = 9000;
  for (const int bins : {1, 2, 3}) {
    options.bins = bins;
    options.cache_capacity = bins == 2 ? 0 : 5;
    ExpectAsBruteForce(Open(TinyMicronet(options), "cpu"), EmptyCache::kReference);
  }
  ExpectAsBruteForce(Open(TinyRecurrent({.cache_capacity = 5}), "cpu"), EmptyCache::kReference);
}

class SessionTokensTest : public testing::Test {
 protected:
  SessionTokensTest() : model_(Open(TinyMicronet(WholeOptions(false)), "cpu")) {
    session_ = Start(model_);
  }
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTokensTest, NothingIsAnsweredBeforeTheFirstToken) {
  EXPECT_EQ(session_->TopP(0.5).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session_->Rank(0).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session_->TopKOf(TokenSet(40), 1).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session_->ProbabilityOf(TokenSet(40)).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session_->NextCharacters("t").status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session_->IntervalOf(0).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session_->TokenAt(0).status().code(), KINGLET_NO_TOKEN_YET);
}

TEST_F(SessionTokensTest, ArgumentsOutOfTheirRangesAreRefused) {
  ASSERT_TRUE(session_->StepToken(3).ok());
  for (const double share : {0.0, -0.5, 1.0000001, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(session_->TopP(share).status().code(), KINGLET_INVALID_ARGUMENT) << share;
  }
  EXPECT_EQ(session_->TopP(1)->size(), 40u);
  EXPECT_EQ(session_->TopP(std::numeric_limits<double>::denorm_min())->size(), 1u);
  EXPECT_EQ(session_->Rank(40).status().code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session_->IntervalOf(40).status().code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session_->TopKOf(TokenSet(41), 1).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session_->ProbabilityOf(TokenSet(39)).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session_->Rank(0, 1).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session_->TokenAt(0).status().code(), KINGLET_OK);
  EXPECT_EQ(session_->TokenAt(UINT32_MAX).status().code(), KINGLET_OK);
  EXPECT_EQ(*session_->TokenAt(UINT32_MAX), 39u);
}

TEST_F(SessionTokensTest, AModelOfIdsHasNoPrefixes) {
  TinyOptions options = WholeOptions(false);
  options.vocabulary = false;
  const auto session = Start(Open(TinyMicronet(options), "cpu"));
  ASSERT_TRUE(session->StepToken(3).ok());
  EXPECT_EQ(session->WithPrefix("t").status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(session->NextCharacters("t").status().code(), KINGLET_UNSUPPORTED);
}

// A set of tokens in the head does not need the tails.
TEST_F(SessionTokensTest, ASetOpensTheClustersOfItsTokens) {
  ASSERT_TRUE(session_->StepToken(3).ok());
  const std::vector<uint32_t> ids = {1, 0, 1};
  ASSERT_EQ(session_->TopKOf(TokenSet(40, ids), 9)->size(), 2u);
  ASSERT_TRUE(session_->ProbabilityOf(TokenSet(40, ids)).ok());
  ASSERT_TRUE(session_->IntervalOf(0).ok());
  EXPECT_EQ(session_->clusters_opened(), ClusterSet{0});
}

}  // namespace
}  // namespace kinglet::session_tokens_test
