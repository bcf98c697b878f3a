#include "converters/tuning/cache_likelihood.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/support/model_builder.h"

namespace kinglet::cache_likelihood_test {
namespace {

TextTrace RandomTrace(uint64_t tokens, uint64_t width, uint32_t vocabulary, bool codes) {
  TestRandom random(tokens + 1000 * width + vocabulary);
  TextTrace trace;
  trace.width = width;
  trace.product_scale = codes ? 0.0078125F : 1.0F;
  for (uint64_t t = 0; t < tokens; ++t) trace.ids.push_back(random.Below(vocabulary));
  for (uint64_t t = 0; t + 1 < tokens; ++t) {
    trace.log_probabilities.push_back(-8.0 * (1.0 + static_cast<double>(random.Signed())));
    for (uint64_t i = 0; i < width; ++i) {
      trace.hidden.push_back(codes ? static_cast<float>(random.Below(511)) - 255.0F
                                   : 4.0F * random.Signed());
    }
  }
  return trace;
}

// The equations of Grave et al. 2017 and the reference's rule for an empty cache, in double:
//   p = (1 - lambda) softmax + lambda sum over matching pairs of softmax(theta h . key)
double ByDefinition(const TextTrace& trace, uint64_t capacity, const CacheParameters& at) {
  const uint64_t n = trace.log_probabilities.size();
  const auto product = [&trace](uint64_t a, uint64_t b) {
    double sum = 0;
    for (uint64_t i = 0; i < trace.width; ++i) {
      sum += static_cast<double>(trace.hidden[a * trace.width + i]) *
             static_cast<double>(trace.hidden[b * trace.width + i]);
    }
    return sum * static_cast<double>(trace.product_scale);
  };
  double loss = 0;
  for (uint64_t t = 0; t < n; ++t) {
    // The pair of token s is (its hidden state, the word after it).
    const uint64_t first = t > capacity ? t - capacity : 0;
    double largest = -std::numeric_limits<double>::infinity(), total = 0, matching = 0;
    for (uint64_t s = first; s < t; ++s) largest = std::max(largest, product(s, t));
    for (uint64_t s = first; s < t; ++s) {
      const double weight = std::exp(at.theta * (product(s, t) - largest));
      total += weight;
      if (trace.ids[s + 1] == trace.ids[t + 1]) matching += weight;
    }
    const double share = total > 0 ? matching / total : 0;
    loss -= std::log((1 - at.lambda) * std::exp(trace.log_probabilities[t]) + at.lambda * share);
  }
  return loss / static_cast<double>(n);
}

const CacheParameters kPoints[] = {
    {0.1, 0.016}, {0.24, 0.5}, {0.999, 1e-12}, {1e-9, 3.0}, {0.5, 20.0}};

TEST(CacheLikelihood, IsTheDefinition) {
  for (const bool codes : {false, true}) {
    for (const uint64_t tokens : {2, 3, 41, 300}) {
      for (const uint64_t width : {1, 7, 40}) {
        for (const uint32_t capacity : {1, 5, 64, 1000}) {
          const TextTrace trace = RandomTrace(tokens, width, 9, codes);
          CacheLikelihood likelihood(trace, capacity, 1);
          for (CacheParameters point : kPoints) {
            // Codes are large; float logits of thousands would be compared with double ones.
            if (codes) point.theta = std::min(point.theta, 0.05);
            const double expected = ByDefinition(trace, capacity, point);
            EXPECT_NEAR(likelihood.MeanLoss(point), expected, 1e-5 * (1 + expected))
                << tokens << " tokens, width " << width << ", capacity " << capacity << ", lambda "
                << point.lambda << ", theta " << point.theta;
          }
        }
      }
    }
  }
}

TEST(CacheLikelihood, MemoryAndThreadsChangeNoBit) {
  const TextTrace trace = RandomTrace(1500, 12, 50, false);
  constexpr uint32_t kCapacity = 90;
  CacheLikelihood whole(trace, kCapacity, 1);
  const uint64_t needed = TuningBytes(trace.ids.size(), trace.width);
  for (const uint64_t memory : {uint64_t{0}, needed, needed + 4 * 50'000, kTuningMemory}) {
    for (const size_t threads : {1, 3, 64}) {
      CacheLikelihood other(trace, kCapacity, threads, memory);
      for (const CacheParameters& point : kPoints) {
        EXPECT_EQ(other.MeanLoss(point), whole.MeanLoss(point)) << memory << ", " << threads;
      }
    }
  }
}

// The fractions of a few thetas are kept; the order in which thetas are asked for must not matter.
TEST(CacheLikelihood, TheOrderOfQueriesChangesNoBit) {
  const TextTrace trace = RandomTrace(200, 5, 10, false);
  CacheLikelihood one(trace, 20, 1);
  std::map<double, double> losses;
  for (const double theta : {0.1, 0.2, 0.3, 0.4, 0.1, 0.4, 0.2, 0.1, 0.5, 0.1}) {
    const double loss = one.MeanLoss({0.3, theta});
    CacheLikelihood fresh(trace, 20, 1);
    EXPECT_EQ(loss, fresh.MeanLoss({0.3, theta})) << theta;
    losses[loss] = theta;
  }
  EXPECT_EQ(losses.size(), 5U);  // five thetas, five answers
}

TEST(CacheLikelihood, ImpossibleTokens) {
  TextTrace trace = RandomTrace(30, 4, 3, false);
  trace.ids.back() = 3;  // in no cache
  trace.log_probabilities.back() = -std::numeric_limits<double>::infinity();
  CacheLikelihood impossible(trace, 10, 1);
  EXPECT_EQ(impossible.MeanLoss({0.1, 0.1}), std::numeric_limits<double>::infinity());
  // The cache can give probability to a word to which the network gives 0.
  trace.ids.back() = trace.ids[28];
  CacheLikelihood rescued(trace, 10, 1);
  EXPECT_TRUE(std::isfinite(rescued.MeanLoss({0.1, 0.1})));
}

TEST(TuningBytes, GrowsWithTheText) {
  EXPECT_EQ(TuningBytes(0, 128), 0U);
  EXPECT_EQ(TuningBytes(1, 128), 36U + 512U);
  EXPECT_EQ(TuningBytes(217'646, 128), 217'646U * 548U);
}

}  // namespace
}  // namespace kinglet::cache_likelihood_test
