// The cluster functions of every backend against the reference, bit for bit.
#include "kernels/cluster_tokens.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/ref/cluster_tokens.h"
#include "kernels/ref/sum.h"
#include "tests/support/model_builder.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::cluster_tokens_test {
namespace {

std::vector<ClusterFunctions<float>> AllFunctions() {
  std::vector<ClusterFunctions<float>> all = {ref::kClusterFunctions<float>};
#ifdef KINGLET_HAVE_CPU_BACKEND
  all.push_back(cpu::ClusterFunctionsCpu());
  for (const cpu::Target target : cpu::SupportedTargets()) {
    const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(target);
    if (functions == nullptr) continue;
    all.push_back({functions->log_probabilities, functions->at_least, functions->mix,
                   functions->exponentials});
  }
#endif
  return all;
}

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

const std::vector<size_t> kSizes = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 100, 1000, 4099};

std::vector<float> Logits(size_t n, uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = 20 * random.Signed();
  if (n > 5) logits[5] = -3e38f;
  return logits;
}

// With the third, (logit - largest) - log_sum is above 0 for some logits, as rounding can make it.
const std::vector<ClusterTerms<float>> kTerms = {{20.0f, 3.5f, 0.0f, -0.0f},
                                                 {20.0f, 0.0f, -1.25f, -0.1671f},
                                                 {19.0f, -1e-3f, -0.0f, -0.0f},
                                                 {20.0f, 7.0f, -1e30f, -0.2f}};

TEST(ClusterTokens, LogProbabilitiesAreTheFormula) {
  for (const ClusterTerms<float>& terms : kTerms) {
    for (const size_t n : kSizes) {
      const auto logits = Logits(n, n);
      std::vector<float> expected(n);
      for (size_t i = 0; i < n; ++i) {
        const float within = (logits[i] - terms.reference) - terms.log_sum;
        expected[i] = terms.parent + (within < 0 ? within : 0.0f) + terms.keep;
      }
      for (const auto& functions : AllFunctions()) {
        std::vector<float> found(n);
        functions.log_probabilities(logits.data(), n, terms, found.data());
        ASSERT_EQ(Bits(found), Bits(expected)) << n;
      }
    }
  }
}

TEST(ClusterTokens, PlacesAreThoseThatReachTheThreshold) {
  for (const ClusterTerms<float>& terms : kTerms) {
    for (const size_t n : kSizes) {
      const auto logits = Logits(n, n + 1);
      std::vector<float> values(n);
      ref::TokenLogProbabilities(logits.data(), n, terms, values.data());
      std::vector<float> thresholds = {
          -std::numeric_limits<float>::infinity(), 0.0f, -1.0f, -5.0f, -1e30f,
          std::numeric_limits<float>::infinity()};
      if (n > 0) thresholds.push_back(values[n / 2]);  // a threshold that is reached exactly
      for (const float threshold : thresholds) {
        std::vector<uint32_t> expected;
        for (uint32_t i = 0; i < n; ++i) {
          if (values[i] >= threshold) expected.push_back(i);
        }
        for (const auto& functions : AllFunctions()) {
          std::vector<uint32_t> found(n + 16);
          found.resize(functions.at_least(logits.data(), n, terms, threshold, found.data()));
          ASSERT_EQ(found, expected) << n << " " << threshold;
        }
      }
    }
  }
}

// Thresholds that tokens reach exactly, or miss by one unit in the last place.
TEST(ClusterTokens, NoPlaceIsLostToRounding) {
  TestRandom random(9);
  for (int turn = 0; turn < 200; ++turn) {
    const float scale = std::ldexp(1.0f, static_cast<int>(random.Below(60)) - 30);
    std::vector<float> logits(64);
    for (float& logit : logits) logit = scale * random.Signed();
    const ClusterTerms<float> terms = {scale, 9 * random.Signed(), -20 * random.Signed() - 20,
                                       turn % 3 == 0 ? -0.0f : -0.2f};
    std::vector<float> values(logits.size());
    ref::TokenLogProbabilities(logits.data(), logits.size(), terms, values.data());
    for (const float value : values) {
      const float infinity = std::numeric_limits<float>::infinity();
      for (const float threshold :
           {value, std::nextafter(value, infinity), std::nextafter(value, -infinity)}) {
        std::vector<uint32_t> expected(logits.size() + 16);
        expected.resize(
            ref::TokensAtLeast(logits.data(), logits.size(), terms, threshold, expected.data()));
        for (const auto& functions : AllFunctions()) {
          std::vector<uint32_t> found(logits.size() + 16);
          found.resize(
              functions.at_least(logits.data(), logits.size(), terms, threshold, found.data()));
          ASSERT_EQ(found, expected) << turn;
        }
      }
    }
  }
}

// Thresholds as above: where a token reaches one, its logit reaches LeastLogit.
template <class T>
void NoLogitIsLost() {
  TestRandom random(10);
  const T infinity = std::numeric_limits<T>::infinity();
  size_t excluded = 0;
  for (int turn = 0; turn < 400; ++turn) {
    const T scale = std::ldexp(T{1}, static_cast<int>(random.Below(60)) - 30);
    const ClusterTerms<T> terms = {scale, T(9 * random.Signed()), T(-20 * random.Signed() - 20),
                                   turn % 3 == 0 ? -T{0} : T(-0.2)};
    for (size_t n = 1 + random.Below(200); n > 0; --n) {
      const T logit = scale * T(random.Signed());
      const T value = ref::TokenLogProbability(logit, terms);
      for (const T threshold : {value, std::nextafter(value, -infinity), -infinity}) {
        ASSERT_GE(logit, LeastLogit(terms, threshold)) << turn;
      }
      if (logit < LeastLogit(terms, value + T{8})) ++excluded;
    }
  }
  EXPECT_GT(excluded, 1000u);
  const T nan = std::numeric_limits<T>::quiet_NaN(), most = std::numeric_limits<T>::max();
  EXPECT_EQ(LeastLogit<T>({T{1}, T{2}, T{0}, -T{0}}, nan), -infinity);
  EXPECT_EQ(LeastLogit<T>({most, T{2}, most, -T{0}}, T{-1}), -infinity);
}

TEST(ClusterTokens, NoLogitIsLostToRounding) {
  NoLogitIsLost<float>();
  NoLogitIsLost<double>();
}

TEST(ClusterTokens, CachedTokensAreMixedByTheFormula) {
  const std::vector<CacheTerms<float>> all_terms = {
      {0.75f, 0.25f, 3.0f}, {0.86f, 0.14f, 1000.0f}, {1e-6f, 0.999999f, 1.0f}, {0.5f, 0.5f, 1e-30f},
      {1.0f, 1e-38f, 1e6f}, {1.0f, 1e-38f, 1e-6f}};  // the last two: denormals, nothing, infinity
  for (const CacheTerms<float>& terms : all_terms) {
    for (const size_t n : kSizes) {
      TestRandom random(n);
      std::vector<float> weights(n), before(n), expected(n);
      for (size_t i = 0; i < n; ++i) {
        weights[i] = Exp(40 * random.Signed());
        before[i] = -100 * (1 + random.Signed());
        expected[i] = Log(terms.keep * Exp(before[i]) + terms.lambda * (weights[i] / terms.total));
      }
      for (const auto& functions : AllFunctions()) {
        std::vector<float> found = before;
        functions.mix(weights.data(), n, terms, found.data());
        ASSERT_EQ(Bits(found), Bits(expected)) << n;
      }
    }
  }
}

TEST(ClusterTokens, ExponentialsInPlace) {
  for (const size_t n : kSizes) {
    std::vector<float> expected = Logits(n, n + 2);
    const std::vector<float> x = expected;
    for (float& value : expected) value = Exp(value);
    for (const auto& functions : AllFunctions()) {
      std::vector<float> found = x;
      functions.exponentials(found.data(), n, found.data());
      ASSERT_EQ(Bits(found), Bits(expected)) << n;
    }
  }
}

// -0 is the only number whose addition changes no other number.
TEST(ClusterTokens, MinusZeroKeepsEveryBit) {
  const std::vector<float> logits = {1.0f, 0.5f};
  const ClusterTerms<float> terms = {1.0f, 0.0f, -0.0f, -0.0f};
  for (const auto& functions : AllFunctions()) {
    std::vector<float> found(2);
    functions.log_probabilities(logits.data(), 2, terms, found.data());
    EXPECT_EQ(found[0], 0.0f);
    EXPECT_EQ(found[1], -0.5f);
  }
}

}  // namespace
}  // namespace kinglet::cluster_tokens_test
