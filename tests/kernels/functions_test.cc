// exp, log, sigmoid, tanh and two forms of gelu of kernels/functions.h against the C library in
// double precision, and the vector forms against the scalar ones. Every
// KINGLET_FUNCTIONS_STRIDE-th float is tested; a stride of 1 tests all floats.
#include "kernels/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::functions_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t Stride() {
  const char* text = std::getenv("KINGLET_FUNCTIONS_STRIDE");
  const long stride = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return stride > 0 ? static_cast<uint32_t>(stride) : KINGLET_DEFAULT_STRIDE;
}

float FromBits(uint32_t bits) { return internal::FloatFromBits(bits); }

// The distance of `value` from `exact` in units of the last place of the float nearest `exact`.
double ErrorInUlps(float value, double exact) {
  const auto nearest = static_cast<float>(exact);
  const double magnitude = std::max(std::fabs(double{nearest}), 0x1p-126);
  const double ulp = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::fabs(double{value} - exact) / ulp;
}

TEST(Exp, IsWithin1Point1UlpAndMonotone) {
  const uint32_t stride = Stride();
  double worst = 0;
  float worst_at = 0;
  // Bits 0 .. of +104.x and -104.x: beyond them exp is 0 or infinity.
  for (const uint32_t sign : {0u, 0x80000000u}) {
    float previous = 1.0f;
    for (uint32_t bits = 0; bits < 0x42d10000u; bits += stride) {
      const float x = FromBits(sign | bits);
      const float y = Exp(x);
      if (sign == 0) {
        ASSERT_GE(y, previous) << x;
      } else {
        ASSERT_LE(y, previous) << x;
      }
      previous = y;
      const double exact = std::exp(double{x});
      if (exact > std::numeric_limits<float>::max()) {
        // May round to the largest float, or overflow.
        ASSERT_GE(y, std::numeric_limits<float>::max()) << x;
        continue;
      }
      const double error = ErrorInUlps(y, exact);
      if (!(error <= worst)) worst = error, worst_at = x;
    }
  }
  EXPECT_LE(worst, 1.1) << worst_at;
  EXPECT_GT(worst, 0.5);  // no float function has less; a measurement below is wrong
}

TEST(Exp, HasExactSpecialValues) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_FALSE(std::signbit(Exp(-kInfinity)));
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
  EXPECT_EQ(Exp(89.0f), kInfinity);
  EXPECT_EQ(Exp(-104.5f), 0.0f);
  EXPECT_EQ(Exp(std::numeric_limits<float>::denorm_min()), 1.0f);
  EXPECT_EQ(Exp(-103.0f), std::numeric_limits<float>::denorm_min());
  // OEIS A001113, A068985.
  EXPECT_EQ(Exp(1.0f), 2.71828182845904523536f);
  EXPECT_EQ(Exp(-1.0f), 0.36787944117144232160f);
}

TEST(SoftmaxTerm, IsNearTheExponential) {
  const uint32_t stride = Stride();
  double worst = 0;
  for (uint32_t bits = 0; bits <= std::bit_cast<uint32_t>(87.0f); bits += stride) {
    for (const float x : {-FromBits(bits), std::min(FromBits(bits), 64.0f)}) {
      const double error =
          std::fabs(static_cast<double>(SoftmaxTerm(x)) / std::exp(static_cast<double>(x)) - 1);
      worst = std::max(worst, error - 1.4e-8 * static_cast<double>(std::fabs(x)));
    }
  }
  EXPECT_LE(worst, 2.5e-7);
  EXPECT_GT(worst, 0x1p-25);
}

TEST(SoftmaxTerm, HasExactSpecialValues) {
  EXPECT_EQ(SoftmaxTerm(0.0f), 1.0f);
  EXPECT_EQ(SoftmaxTerm(-0.0f), 1.0f);
  EXPECT_EQ(SoftmaxTerm(-kInfinity), SoftmaxTerm(-87.0f));
  EXPECT_EQ(SoftmaxTerm(-1e30f), SoftmaxTerm(-87.0f));
  EXPECT_GE(SoftmaxTerm(-87.0f), std::numeric_limits<float>::min());
  EXPECT_TRUE(std::isnan(SoftmaxTerm(kNaN)));
  // An NVIDIA GPU's NaN has all bits.
  EXPECT_TRUE(std::isnan(SoftmaxTerm(internal::FloatFromBits(0x7fffffffu))));
}

TEST(Log, IsWithin0Point9UlpAndMonotone) {
  const uint32_t stride = Stride();
  double worst = 0;
  float worst_at = 0;
  float previous = -kInfinity;
  for (uint64_t bits = 1; bits < 0x7f800000u; bits += stride) {
    const float x = FromBits(static_cast<uint32_t>(bits));
    const float y = Log(x);
    ASSERT_GE(y, previous) << x;
    previous = y;
    const double error = ErrorInUlps(y, std::log(double{x}));
    if (!(error <= worst)) worst = error, worst_at = x;
  }
  EXPECT_LE(worst, 0.9) << worst_at;
  EXPECT_GT(worst, 0.5);
}

TEST(Log, HasExactSpecialValues) {
  EXPECT_EQ(Log(1.0f), 0.0f);
  EXPECT_FALSE(std::signbit(Log(1.0f)));
  EXPECT_EQ(Log(0.0f), -kInfinity);
  EXPECT_EQ(Log(-0.0f), -kInfinity);
  EXPECT_EQ(Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  EXPECT_TRUE(std::isnan(Log(-kInfinity)));
  EXPECT_TRUE(std::isnan(Log(kNaN)));
  // OEIS A002162, A002392; the smallest denormal is 2^-149.
  EXPECT_EQ(Log(2.0f), 0.69314718055994530942f);
  EXPECT_EQ(Log(10.0f), 2.30258509299404568402f);
  EXPECT_EQ(Log(std::numeric_limits<float>::denorm_min()), -149 * 0.69314718055994530942f);
}

// The largest error over floats of both signs up to 128, beyond which both functions are constant.
template <class Function, class Exact>
double WorstError(Function function, Exact exact) {
  const uint32_t stride = Stride();
  double worst = 0;
  for (const uint32_t sign : {0u, 0x80000000u}) {
    for (uint32_t bits = 0; bits < 0x43000000u; bits += stride) {
      const float x = FromBits(sign | bits);
      const double error = ErrorInUlps(function(x), exact(double{x}));
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

TEST(Sigmoid, IsWithin1Point6Ulp) {
  const double worst = WorstError([](float x) { return Sigmoid(x); },
                                  [](double x) { return 1 / (1 + std::exp(-x)); });
  EXPECT_LE(worst, 1.6);
  EXPECT_GT(worst, 0.5);
}

TEST(Sigmoid, HasExactSpecialValues) {
  EXPECT_EQ(Sigmoid(0.0f), 0.5f);
  EXPECT_EQ(Sigmoid(-0.0f), 0.5f);
  EXPECT_EQ(Sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(Sigmoid(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(Sigmoid(kNaN)));
  EXPECT_EQ(Sigmoid(std::numeric_limits<float>::max()), 1.0f);
  EXPECT_EQ(Sigmoid(-103.0f), std::numeric_limits<float>::denorm_min());
  // 1 / (1 + 1/e) and 1 / (1 + e), worked out in 40 digits.
  EXPECT_EQ(Sigmoid(1.0f), 0.73105857863000487925f);
  EXPECT_EQ(Sigmoid(0.0), 0.5);
  EXPECT_EQ(Sigmoid(-1000.0), 0.0);
  EXPECT_DOUBLE_EQ(Sigmoid(-1.0), 0.26894142136999512075);
}

// The worst errors of a function of floats for x from 0 to `most` and from -`most` to 0. Its form
// in double is checked on the way.
template <class Function, class Exact>
std::pair<double, double> WorstOfBothSigns(const Function& function, const Exact& exact,
                                           float most) {
  double worst[2] = {};
  for (const uint32_t sign : {0U, 1U}) {
    for (uint32_t bits = 0; FromBits(bits) < most; bits += 7 * Stride()) {
      const float x = FromBits(sign << 31U | bits);
      const double expected = exact(x);
      worst[sign] = std::max(worst[sign], ErrorInUlps(function(x), expected));
      EXPECT_NEAR(function(double{x}), expected, 1e-15 * std::fabs(x));
    }
  }
  return {worst[0], worst[1]};
}

// Gelu(x) may be some units in the last place off where it is small compared with x: such a result
// is added to larger ones.
TEST(Gelu, IsWithinAFewUlps) {
  const auto [worst, worst_of_negative] =
      WorstOfBothSigns([](auto x) { return Gelu(x); },
                       [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 32);
  EXPECT_LE(worst, 5.1);
  EXPECT_LE(worst_of_negative, 14);
  EXPECT_GT(worst, 0.5);
}

TEST(Gelu, HasKnownValues) {
  EXPECT_EQ(Gelu(0.0f), 0.0f);
  // From tables of the normal distribution: x Phi(x) with Phi(1), Phi(-1), Phi(2).
  EXPECT_FLOAT_EQ(Gelu(1.0f), 0.84134474606854293f);
  EXPECT_FLOAT_EQ(Gelu(-1.0f), -0.15865525393145705f);
  EXPECT_FLOAT_EQ(Gelu(2.0f), 1.9544997361036416f);
  EXPECT_EQ(Gelu(100.0f), 100.0f);
  EXPECT_EQ(Gelu(-100.0f), 0.0f);
  EXPECT_EQ(Gelu(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Gelu(-kInfinity)));
  EXPECT_TRUE(std::isnan(Gelu(kNaN)));
}

// Below 0 the result is x e^(2 u) in essence: the rounding of u counts as often as u is large.
TEST(TanhGelu, IsWithinAFewUlps) {
  const auto [worst, worst_of_negative] =
      WorstOfBothSigns([](auto x) { return TanhGelu(x); },
                       [](long double x) {
                         const long double u = std::sqrt(2 / std::numbers::pi_v<long double>) *
                                               (x + 0.044715L * x * x * x);
                         return static_cast<double>(x / (1 + std::exp(-2 * u)));
                       },
                       8);
  EXPECT_LE(worst, 4);
  EXPECT_LE(worst_of_negative, 112);
  EXPECT_GT(worst, 0.5);
}

TEST(TanhGelu, HasKnownValues) {
  EXPECT_EQ(TanhGelu(0.0f), 0.0f);
  // What PyTorch's gelu(approximate="tanh") gives in float64.
  EXPECT_FLOAT_EQ(TanhGelu(1.0f), 0.8411919906082768f);
  EXPECT_FLOAT_EQ(TanhGelu(-1.0f), -0.15880800939172324f);
  EXPECT_EQ(TanhGelu(100.0f), 100.0f);
  EXPECT_EQ(TanhGelu(-100.0f), 0.0f);
  EXPECT_EQ(TanhGelu(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(TanhGelu(-kInfinity)));
  EXPECT_TRUE(std::isnan(TanhGelu(kNaN)));
}

TEST(Tanh, IsWithin1Point4Ulp) {
  const double worst =
      WorstError([](float x) { return Tanh(x); }, [](double x) { return std::tanh(x); });
  EXPECT_LE(worst, 1.4);
  EXPECT_GT(worst, 0.5);
}

TEST(Tanh, HasExactSpecialValuesAndIsOdd) {
  EXPECT_EQ(Tanh(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(Tanh(-0.0f)));
  EXPECT_EQ(Tanh(kInfinity), 1.0f);
  EXPECT_EQ(Tanh(-kInfinity), -1.0f);
  EXPECT_TRUE(std::isnan(Tanh(kNaN)));
  EXPECT_EQ(Tanh(50.0f), 1.0f);
  EXPECT_EQ(Tanh(1e-30f), 1e-30f);
  EXPECT_EQ(Tanh(-std::numeric_limits<float>::denorm_min()),
            -std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(Tanh(1.0f), 0.76159415595576488812f);  // OEIS A073744
  for (uint32_t bits = 0; bits < 0x42000000u; bits += 997 * Stride()) {
    ASSERT_EQ(Tanh(-FromBits(bits)), -Tanh(FromBits(bits)));
  }
}

#ifdef KINGLET_HAVE_CPU_BACKEND

using VectorFunction = void (*cpu::VectorFunctions::*)(const float*, size_t, float*);

// All bit patterns, signs, infinities and NaN included, a chunk at a time.
template <class Function>
void ExpectVectorsEqual(VectorFunction vector, Function scalar) {
  constexpr uint64_t kEnd = uint64_t{1} << 32;
  const uint32_t stride = std::max(Stride(), 16u);
  std::vector<float> x, y, expected;
  for (uint64_t bits = 0; bits < kEnd;) {
    x.clear();
    expected.clear();
    for (; x.size() < 4099 && bits < kEnd; bits += stride) {
      x.push_back(FromBits(static_cast<uint32_t>(bits)));
      expected.push_back(scalar(x.back()));
    }
    for (const cpu::Target target : cpu::SupportedTargets()) {
      const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(target);
      if (functions == nullptr) continue;
      y.assign(x.size(), 7.0f);
      (functions->*vector)(x.data(), x.size(), y.data());
      if (std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) == 0) continue;
      for (size_t i = 0; i < x.size(); ++i) {
        const bool same = std::bit_cast<uint32_t>(expected[i]) == std::bit_cast<uint32_t>(y[i]);
        ASSERT_TRUE(same || (std::isnan(expected[i]) && std::isnan(y[i])))
            << cpu::TargetName(target) << " at " << x[i] << ": " << y[i];
      }
    }
  }
}

TEST(VectorExp, EqualsTheScalarOne) {
  ExpectVectorsEqual(&cpu::VectorFunctions::exponentials, [](float x) { return Exp(x); });
}

// Tiles of 0 and of 1,023 numbers of one size: their sums, of which each chain is a sum of up to
// 64 equal terms, show the bits of the term.
TEST(VectorSoftmaxTerm, EqualsTheScalarOne) {
  std::vector<float> x(1024);
  for (uint32_t bits = 0; bits < std::bit_cast<uint32_t>(kInfinity); bits += 524287) {
    const float number = FromBits(bits);
    std::fill(x.begin(), x.end(), bits % 2 == 1 && number <= 64 ? number : -number);
    x[0] = 0;
    const float term = SoftmaxTerm(x[1]);
    float chains[16] = {1.0f};
    for (size_t i = 1; i < x.size(); ++i) chains[i % 16] += term;
    for (size_t half = 8; half > 0; half /= 2) {
      for (size_t j = 0; j < half; ++j) chains[j] += chains[j + half];
    }
    for (const cpu::Target target : cpu::SupportedTargets()) {
      const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(target);
      if (functions == nullptr) continue;
      const float largest = 0;
      float sum = 0;
      functions->sum_logit_tiles(x.data(), x.size(), false, &largest, {}, &sum);
      ASSERT_EQ(sum, chains[0]) << cpu::TargetName(target) << " at " << x[1];
    }
  }
}

TEST(VectorSigmoid, EqualsTheScalarOne) {
  ExpectVectorsEqual(&cpu::VectorFunctions::sigmoids, [](float x) { return Sigmoid(x); });
}

TEST(VectorTanh, EqualsTheScalarOne) {
  ExpectVectorsEqual(&cpu::VectorFunctions::tangents, [](float x) { return Tanh(x); });
}

#endif  // KINGLET_HAVE_CPU_BACKEND

}  // namespace
}  // namespace kinglet::functions_test
