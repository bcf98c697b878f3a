#include "runtime/queries/neural_cache_mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/runtime/queries/tiny_session.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::neural_cache_mix_test {
namespace {

// AWD-LSTM's neural cache has no effect until the stream has more pairs than the cache holds; then
// all pairs count.
TEST(Distribution, ACachePastItsCapacityStartsFull) {
  constexpr uint32_t kCapacity = 5;
  TinyRecurrentOptions with{.cache_capacity = kCapacity}, without;
  for (const EmptyCache empty : {EmptyCache::kReference, EmptyCache::kNormalised}) {
    const auto model = *Model::FromBytes(*SerialiseModel(TinyRecurrent(with)), {});
    const auto cached = *Session::Create(model, {.empty_cache = empty});
    const auto plain = StartTiny(TinyRecurrent(without));
    std::vector<double> expected(23), found(23);
    for (uint32_t t = 0; t < 12; ++t) {
      const uint32_t id = t % 3 == 0 ? 22 : t % 7;
      ASSERT_TRUE(cached->StepToken(id).ok());
      ASSERT_TRUE(plain->StepToken(id).ok());
      const auto top = *cached->TopK(4);  // lazily, before anything else is computed
      ASSERT_TRUE(cached->LogProbabilities(std::span<double>(found)).ok());
      ASSERT_TRUE(plain->LogProbabilities(std::span<double>(expected)).ok());
      EXPECT_EQ(found == expected, t <= kCapacity) << t;
      double total = 0;
      for (const double value : found) total += std::exp(value);
      EXPECT_NEAR(total, 1, 1e-5) << t;
      for (const Candidate& candidate : top) {
        EXPECT_EQ(candidate.log_probability, found[candidate.id]);
        EXPECT_LT(std::count_if(found.begin(), found.end(),
                                [&](double value) { return value > candidate.log_probability; }),
                  4);
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::neural_cache_mix_test
