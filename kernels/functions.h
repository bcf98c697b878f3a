// The elementary functions of docs/NUMERICS.md, rule 6: exponential, logarithm, logistic sigmoid,
// hyperbolic tangent and Gaussian error linear unit from additions, multiplications, fused
// multiply-adds and (except for the exponential) one IEEE division, so that every backend gets the
// same bits from the same sequence. C++17: nvcc compiles this file too.
//
// float: our own, checked by tests/kernels/functions_test.cc: error at most 1.1 ulp (exp), 0.9 ulp
// (log), 1.6 ulp (sigmoid), 1.4 ulp (tanh), 5.1 and below zero 14 ulp (gelu); exp and log are
// monotone, exp(0) = 1 and log(1) = 0 exactly. For double, which only ref64 uses, the C library's
// functions: ref64 promises an error of 1e-6, not bits.
#ifndef KINGLET_KERNELS_FUNCTIONS_H_
#define KINGLET_KERNELS_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/fused.h"
#include "kernels/host_device.h"

namespace kinglet {

// Constants of the sequences below. Vector kernels use the same ones.
struct ExpConstants {
  static constexpr float kOverflow = 88.7228394f;    // above: infinity
  static constexpr float kUnderflow = -103.972084f;  // below: 0
  static constexpr float kLog2E = 1.44269502f;
  static constexpr float kLn2High = 0.693145752f;  // 15 bits: products with |n| < 2^9 are exact
  static constexpr float kLn2Low = 1.42860677e-06f;
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  // Taylor coefficients 1/k!, k = 7 .. 2; |r| <= ln 2 / 2 leaves r^8/8! < 6e-9.
  static constexpr float kC7 = 1.98412701e-04f;
  static constexpr float kC6 = 1.38888892e-03f;
  static constexpr float kC5 = 8.33333377e-03f;
  static constexpr float kC4 = 4.16666679e-02f;
  static constexpr float kC3 = 1.66666672e-01f;
  static constexpr float kC2 = 0.5f;
};

// 2^f = 1 + f (c1 + c2 f + ... + c5 f^4) for |f| <= 1/2, which is 1 where f is 0: the largest
// relative error is least, 1.1e-7 with these floats.
struct SoftmaxTermConstants {
  static constexpr float kLeast = -87.0f;  // the power of two is a normal number from here on
  static constexpr float kC5 = 1.32647273e-03f;
  static constexpr float kC4 = 9.67151299e-03f;
  static constexpr float kC3 = 5.55073358e-02f;
  static constexpr float kC2 = 2.40222424e-01f;
  static constexpr float kC1 = 6.93147004e-01f;
};

struct LogConstants {
  static constexpr float kSqrtHalf = 0.707106769f;
  static constexpr float kLn2High = 0.693145752f;
  static constexpr float kLn2Low = 1.42860677e-06f;
  // 2/3, 2/5, 2/7, 2/9: log((1+s)/(1-s)) = 2s + s^3 (2/3 + 2/5 s^2 + ...), |s| <= 0.172 leaves <
  // 3e-9.
  static constexpr float kC3 = 0.666666687f;
  static constexpr float kC5 = 0.4f;
  static constexpr float kC7 = 0.285714298f;
  static constexpr float kC9 = 0.222222224f;
};

struct TanhConstants {
  static constexpr float kSmall = 0.625f;  // below: a polynomial; above: the exponential
  // tanh(x) = x + x^3 (c0 + c1 x^2 + ... + c4 x^8) on [0, 0.625]. Minimax coefficients (the Remez
  // algorithm in 40 digits): a relative error of 4.4e-9 before they are rounded to float.
  static constexpr float kC0 = -0.333332807f;
  static constexpr float kC1 = 0.133314416f;
  static constexpr float kC2 = -0.0537397154f;
  static constexpr float kC3 = 0.020639088f;
  static constexpr float kC4 = -0.00570498733f;
};

struct GeluConstants {
  static constexpr float kFar = 16.0f;  // beyond kFar the rest of the distribution is 0 in floats
  static constexpr float kCentre = 3.0f;
  // R(a) = e^(a^2 / 2) erfc(a / sqrt 2) / 2 = c0 + c1 v + ... + c9 v^9 with v = (a - 3) / (a + 3),
  // for a up to 14.5: fitted with weights that make the largest relative error least, 9.4e-9 before
  // the coefficients are rounded to float.
  static constexpr float kC0 = 1.2151395e-01f;
  static constexpr float kC1 = -2.0640261e-01f;
  static constexpr float kC2 = 1.2322504e-01f;
  static constexpr float kC3 = -4.621326e-02f;
  static constexpr float kC4 = 6.1319424e-03f;
  static constexpr float kC5 = 2.9043872e-03f;
  static constexpr float kC6 = -9.832885e-04f;
  static constexpr float kC7 = -3.3901236e-04f;
  static constexpr float kC8 = 1.1501385e-04f;
  static constexpr float kC9 = 5.3161482e-05f;
};

namespace internal {
template <class T>
inline constexpr T kLowest = std::numeric_limits<T>::lowest();

KINGLET_HOST_DEVICE inline float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
KINGLET_HOST_DEVICE inline uint32_t BitsFromFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// e^x = y * 2^n with y from 0.7 to 1.5, for x in [kUnderflow, kOverflow].
struct ExpFactors {
  float y, n;
};
KINGLET_HOST_DEVICE inline ExpFactors FactorsOfExp(float x) {
  using C = ExpConstants;
  // n = round(x / ln 2); r = x - n ln 2 in two subtractions.
  const float n = Fused(x, C::kLog2E, C::kRound) - C::kRound;
  float r = Fused(n, -C::kLn2High, x);
  r = Fused(n, -C::kLn2Low, r);
  float p = C::kC7;
  p = Fused(p, r, C::kC6);
  p = Fused(p, r, C::kC5);
  p = Fused(p, r, C::kC4);
  p = Fused(p, r, C::kC3);
  p = Fused(p, r, C::kC2);
  // 1 + (r + r^2 p): the large term is added last.
  const float r2 = r * r;
  const float q = Fused(r2, p, r);
  return {1.0f + q, n};
}
}  // namespace internal

// e^x. NaN stays NaN; results may be denormal (one rounding).
KINGLET_HOST_DEVICE inline float Exp(float x) {
  using C = ExpConstants;
  if (!(x <= C::kOverflow)) return x > C::kOverflow ? internal::FloatFromBits(0x7f800000u) : x;
  if (x < C::kUnderflow) return 0.0f;
  const internal::ExpFactors e = internal::FactorsOfExp(x);
  // Two powers of two, so that neither overflows nor loses bits before the last multiplication.
  const int32_t k = static_cast<int32_t>(e.n);
  const int32_t k1 = k / 2;
  const int32_t k2 = k - k1;
  const float s1 = internal::FloatFromBits(static_cast<uint32_t>(k1 + 127) << 23);
  const float s2 = internal::FloatFromBits(static_cast<uint32_t>(k2 + 127) << 23);
  return e.y * s1 * s2;
}

// e^x for x <= 0, as a term of a softmax's normaliser (docs/NUMERICS.md, rule 5): about two thirds
// of the instructions of Exp, and a relative error of at most 2.5e-7 + 1.4e-8 |x|, which in a sum
// with e^0 is next to nothing. Below -87 it is e^-87, not 0. NaN stays NaN.
KINGLET_HOST_DEVICE inline float SoftmaxTerm(float x) {
  using C = SoftmaxTermConstants;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float at_least;  // in one instruction
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(at_least) : "f"(x), "f"(C::kLeast));
#else
  const float at_least = x < C::kLeast ? C::kLeast : x;
#endif
  const float shifted = Fused(at_least, ExpConstants::kLog2E, ExpConstants::kRound);
  const float f = Fused(at_least, ExpConstants::kLog2E, -(shifted - ExpConstants::kRound));
  float p = C::kC5;
  p = Fused(p, f, C::kC4);
  p = Fused(p, f, C::kC3);
  p = Fused(p, f, C::kC2);
  p = Fused(p, f, C::kC1);
  // The integer is in the low bits of `shifted`. A product with its power of two keeps NaN. The
  // vector kernels of `cpu` add the integer to the exponent. That keeps the NaN of its processors,
  // which has zeros in the low bits, but would lose an NVIDIA GPU's, which has ones.
  const uint32_t one = internal::BitsFromFloat(1.0f);
  const float power = internal::FloatFromBits(one + (internal::BitsFromFloat(shifted) << 23));
  return Fused(p, f, 1.0f) * power;
}

// Natural logarithm. log(0) = -infinity, log(x < 0) = NaN, log(infinity) = infinity.
KINGLET_HOST_DEVICE inline float Log(float x) {
  using C = LogConstants;
  uint32_t bits = internal::BitsFromFloat(x);
  int32_t exponent = 0;
  if (!(x > 0.0f) || bits >= 0x7f800000u) {
    if (x == 0.0f) return internal::FloatFromBits(0xff800000u);
    if (x > 0.0f) return x;                       // infinity
    return internal::FloatFromBits(0x7fc00000u);  // negative or NaN
  }
  if (bits < 0x00800000u) {  // denormal: scale by 2^23
    bits = internal::BitsFromFloat(x * 8388608.0f);
    exponent = -23;
  }
  // x = 2^exponent * m with m in [sqrt(1/2), sqrt(2)).
  exponent += static_cast<int32_t>(bits >> 23) - 127;
  float m = internal::FloatFromBits((bits & 0x007fffffu) | 0x3f800000u);
  if (m > 2.0f * C::kSqrtHalf) {
    m *= 0.5f;
    exponent += 1;
  }
  const float f = m - 1.0f;  // exact
  const float s = f / (2.0f + f);
  const float z = s * s;
  float p = C::kC9;
  p = Fused(p, z, C::kC7);
  p = Fused(p, z, C::kC5);
  p = Fused(p, z, C::kC3);
  p = p * z;
  // log m = f - (f^2/2 - s (f^2/2 + p)); the exponent's term is added in two parts.
  const float half_square = 0.5f * f * f;
  const float e = static_cast<float>(exponent);
  const float low = Fused(s, half_square + p, e * C::kLn2Low);
  const float rest = f - (half_square - low);
  return Fused(e, C::kLn2High, rest);
}

// 1 / (1 + e^-x). The exponential of a number below 0 never overflows. NaN stays NaN.
KINGLET_HOST_DEVICE inline float Sigmoid(float x) {
  const bool negative = x < 0.0f;
  const float e = Exp(negative ? x : -x);
  const float numerator = negative ? e : 1.0f;
  const float sum = 1.0f + e;
  const float quotient = numerator / sum;
  // Corrects the rounding errors of the sum and of the quotient, to first order. 1 / sum is the
  // quotient, or 1 - quotient where x is negative.
  const float lost = e - (sum - 1.0f);
  const float remainder = Fused(-quotient, sum, numerator);
  const float inverse = negative ? 1.0f - quotient : quotient;
  return Fused(Fused(-quotient, lost, remainder), inverse, quotient);
}

// Hyperbolic tangent, odd to the last bit. NaN stays NaN.
KINGLET_HOST_DEVICE inline float Tanh(float x) {
  using C = TanhConstants;
  const float magnitude = fabsf(x);
  // 1 - 2 / (e^2|x| + 1); where the exponential overflows this is 1.
  float y = 1.0f - 2.0f / (Exp(2.0f * magnitude) + 1.0f);
  if (magnitude < C::kSmall) {
    const float z = x * x;
    float p = C::kC4;
    p = Fused(p, z, C::kC3);
    p = Fused(p, z, C::kC2);
    p = Fused(p, z, C::kC1);
    p = Fused(p, z, C::kC0);
    y = Fused(z * p, magnitude, magnitude);
  }
  return copysignf(y, x);
}

// Gaussian error linear unit: x Phi(x), Phi being the normal distribution function (Hendrycks &
// Gimpel 2016). With a = |x|, the probability beyond a is e^(-a^2 / 2) R(a), which keeps its digits
// where it is small; R is a polynomial of (a - 3) / (a + 3). NaN stays NaN, and -infinity becomes
// NaN as in the formula.
KINGLET_HOST_DEVICE inline float Gelu(float x) {
  using C = GeluConstants;
  const float magnitude = fabsf(x);
  const float a = magnitude > C::kFar ? C::kFar : magnitude;
  const float v = (a - C::kCentre) / (a + C::kCentre);
  float r = C::kC9;
  r = Fused(r, v, C::kC8);
  r = Fused(r, v, C::kC7);
  r = Fused(r, v, C::kC6);
  r = Fused(r, v, C::kC5);
  r = Fused(r, v, C::kC4);
  r = Fused(r, v, C::kC3);
  r = Fused(r, v, C::kC2);
  r = Fused(r, v, C::kC1);
  r = Fused(r, v, C::kC0);
  // e^(-square / 2), corrected for the rounding of the square.
  const float square = a * a;
  const float lost = Fused(a, a, -square);
  const float e = Exp(-0.5f * square);
  const float beyond = Fused(-0.5f * lost, e, e) * r;
  return x * (x < 0.0f ? beyond : 1.0f - beyond);
}

inline double Gelu(double x) { return x * 0.5 * std::erfc(-x * 0.70710678118654752); }
inline double Exp(double x) { return std::exp(x); }
inline double SoftmaxTerm(double x) { return std::exp(x); }
inline double Log(double x) { return std::log(x); }
inline double Sigmoid(double x) {
  const double e = std::exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
inline double Tanh(double x) { return std::tanh(x); }

// Hendrycks & Gimpel's approximation of the Gaussian error linear unit, 0.5 x (1 + tanh(u)) with
// u = sqrt(2 / pi) (x + 0.044715 x^3), as x sigmoid(2 u), which keeps its digits below 0. 2 u =
// x (kFirst + kThird x^2).
template <class T>
struct TanhGeluConstants {
  static constexpr T kFirst = static_cast<T>(1.5957691216057308);
  static constexpr T kThird = static_cast<T>(0.07135481627260025);
};
template <class T>
KINGLET_HOST_DEVICE inline T TanhGelu(T x) {
  using C = TanhGeluConstants<T>;
  return x * Sigmoid(x * (C::kFirst + C::kThird * (x * x)));
}

// What is subtracted from logits before their exponentials are summed, from the largest of them: 0
// where no exponential is far from 1, so that most sums need no maximum first; else the largest.
template <class T>
KINGLET_HOST_DEVICE inline T SoftmaxReference(T largest) {
  return largest >= T{-64} && largest <= T{64} ? T{0} : largest;
}
// SoftmaxReference of a tile, for its sum of SoftmaxTerm. Minus infinity minus itself would be NaN,
// so the least float replaces it.
template <class T>
KINGLET_HOST_DEVICE inline T TileReference(T largest) {
  return largest < internal::kLowest<T> ? internal::kLowest<T> : SoftmaxReference(largest);
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_FUNCTIONS_H_
