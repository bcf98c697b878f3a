// Compares the cache's contribution to a token with the same model without a cache, and with log p.
#include "runtime/queries/cache_contribution_query.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::cache_contribution_query_test {
namespace {

TEST(CacheContributions, AreTheNetworkAloneAndAShareOfTheCache) {
  TinyOptions options = SmallCacheOptions();
  const ModelDraft draft = TinyMicronet(options);
  const double lambda = FindBlock<NeuralCache>(draft.description)->lambda;
  const auto with = StartTiny(draft);
  options.cache_capacity = 0;
  const auto without = StartTiny(TinyMicronet(options));
  for (const uint32_t fed : {3u, 20u, 39u, 3u, 3u, 7u, 20u, 20u, 1u, 2u}) {
    ASSERT_TRUE(with->StepToken(fed).ok());
    ASSERT_TRUE(without->StepToken(fed).ok());
    const bool empty = with->position() < 2;
    double cache_shares = 0;
    for (uint32_t id = 0; id < 40; ++id) {
      const CacheContribution contribution = *with->CacheContributionOf(id);
      cache_shares += contribution.cache_share;
      EXPECT_EQ(contribution.network_log_probability, *without->LogProbability(id)) << id;
      EXPECT_EQ(without->CacheContributionOf(id)->network_log_probability,
                contribution.network_log_probability)
          << id;
      EXPECT_EQ(without->CacheContributionOf(id)->cache_share, 0) << id;
      const double p = (1 - lambda) * std::exp(contribution.network_log_probability) +
                       (empty ? 0 : lambda * contribution.cache_share);
      EXPECT_NEAR(*with->LogProbability(id), std::log(p), 1e-5) << id;
    }
    EXPECT_NEAR(cache_shares, empty ? 0 : 1, 1e-6);
  }
}

TEST(CacheContributions, OfUnknownIdsAndNewStreamsAreRefused) {
  const auto session = StartTiny(TinyMicronet(SmallCacheOptions()));
  EXPECT_EQ(session->CacheContributionOf(0).status().code(), KINGLET_NO_TOKEN_YET);
  ASSERT_TRUE(session->StepToken(0).ok());
  EXPECT_EQ(session->CacheContributionOf(40).status().code(), KINGLET_ID_OUT_OF_RANGE);
}

}  // namespace
}  // namespace kinglet::cache_contribution_query_test
