// exp and log of kernels/functions.h against the C library in double precision, over as many floats
// as time allows (KINGLET_FUNCTIONS_STRIDE floats apart; 1 is all of them), and the vector forms
// against the scalar ones.
#include "kernels/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet {
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
        // Rounds to the largest float, or overflows, with the constant's own boundary.
        ASSERT_GE(y, std::numeric_limits<float>::max()) << x;
        continue;
      }
      const double error = ErrorInUlps(y, exact);
      if (!(error <= worst)) worst = error, worst_at = x;
    }
  }
  EXPECT_LE(worst, 1.1) << worst_at;
  EXPECT_GT(worst, 0.5);  // a float function cannot do better; a measurement that could is wrong
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

#ifdef KINGLET_HAVE_CPU_BACKEND

TEST(VectorExp, EqualsTheScalarOne) {
  const uint32_t stride = std::max(Stride(), 16u);
  for (const cpu::Target target : cpu::SupportedTargets()) {
    const cpu::VectorFunctions* functions = cpu::FindVectorFunctions(target);
    if (functions == nullptr) continue;
    std::vector<float> x, y;
    // All bit patterns, signs, infinities and NaN included, a piece at a time.
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32);) {
      x.clear();
      for (; x.size() < 4099 && bits < (uint64_t{1} << 32); bits += stride) {
        x.push_back(FromBits(static_cast<uint32_t>(bits)));
      }
      y.assign(x.size(), 7.0f);
      functions->exponentials(x.data(), x.size(), y.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const float expected = Exp(x[i]);
        const bool same = std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(y[i]);
        ASSERT_TRUE(same || (std::isnan(expected) && std::isnan(y[i])))
            << cpu::TargetName(target) << " exp(" << x[i] << ") = " << y[i];
      }
    }
  }
}

#endif  // KINGLET_HAVE_CPU_BACKEND

}  // namespace
}  // namespace kinglet
