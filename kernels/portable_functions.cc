#include "kernels/portable_functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

namespace kinglet::portable {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// 2^n. REQUIRES: -1022 <= n <= 1023.
double PowerOfTwo(int64_t n) {
  return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

constexpr int kParts = 16;
// 2^(i / 16) in two parts.
constexpr double kPowers[kParts][2] = {
    {0x1.0000000000000p+0, 0x0.0000000000000p+0},   {0x1.0b5586cf9890fp+0, 0x1.8a62e4adc610bp-54},
    {0x1.172b83c7d517bp+0, -0x1.19041b9d78a76p-55}, {0x1.2387a6e756238p+0, 0x1.9b07eb6c70573p-54},
    {0x1.306fe0a31b715p+0, 0x1.6f46ad23182e4p-55},  {0x1.3dea64c123422p+0, 0x1.ada0911f09ebcp-55},
    {0x1.4bfdad5362a27p+0, 0x1.d4397afec42e2p-56},  {0x1.5ab07dd485429p+0, 0x1.6324c054647adp-54},
    {0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54}, {0x1.7a11473eb0187p+0, -0x1.41577ee04992fp-55},
    {0x1.8ace5422aa0dbp+0, 0x1.6e9f156864b27p-54},  {0x1.9c49182a3f090p+0, 0x1.c7c46b071f2bep-56},
    {0x1.ae89f995ad3adp+0, 0x1.7a1cd345dcc81p-54},  {0x1.c199bdd85529cp+0, 0x1.11065895048ddp-55},
    {0x1.d5818dcfba487p+0, 0x1.2ed02d75b3707p-55},  {0x1.ea4afa2a490dap+0, -0x1.e9c23179c2893p-54}};

// (1 + 2a) e^(a^2) erfc(a) by powers of (a - 3.75) / (a + 3.75), the form of Shepherd and
// Laframboise (1981): interpolated at Chebyshev's points of 0 <= a <= 28 in 120 digits, relative
// error 1.5e-17.
constexpr double kErfc[] = {
    0x1.3ccda0b5d5dc2p+0,  -0x1.1f367683f899bp-3,  0x1.d5f2948159e2ap-9,   0x1.510169d095d05p-4,
    -0x1.bda9309a28a54p-4, 0x1.7a14188ab12e5p-4,   -0x1.e0d0fa6df792fp-5,  0x1.d0b0037800c03p-6,
    -0x1.3f603c3705657p-7, 0x1.cc3a114f89edap-10,  0x1.33fb297587544p-12,  -0x1.303fe16331749p-12,
    0x1.b1433275fe3f6p-15, 0x1.77988c494946cp-16,  -0x1.7ff68b293ee0cp-17, -0x1.071c8a82edf04p-20,
    0x1.d541d37ff1bbdp-20, -0x1.9dad6ee83495ep-25, -0x1.0f3e2fdea9207p-22, 0x1.12d0a0543bd2ap-26,
    0x1.1a2fc05983c0ap-25, -0x1.e2cd6e8ca727bp-31, -0x1.4b573df27f6aep-29};

}  // namespace

double Exp(double x) {
  constexpr double kOverflow = 0x1.62e42fefa39efp+9, kUnderflow = -745.2;
  if (!(x <= kOverflow)) return x > kOverflow ? kInfinity : x;
  if (x < kUnderflow) return 0;
  // x = n ln 2 / 16 + r; the product of n, of 15 bits, with the first part is exact.
  constexpr double kPerPart = 0x1.71547652b82fep+4;
  constexpr double kPartHigh = 0x1.62e42fef80000p-5, kPartLow = 0x1.1cf79abc9e3b4p-40;
  const double n = std::floor(x * kPerPart + 0.5);
  const double r = (x - n * kPartHigh) - n * kPartLow;
  // Taylor's series of e^r - 1: |r| <= ln 2 / 32 leaves r^9/9! < 4e-21.
  double p = 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = r + r * r * p;
  const auto whole = static_cast<int64_t>(n);
  const auto [high, low] = kPowers[whole & (kParts - 1)];
  // Two powers of two, so that neither overflows nor loses bits before the last multiplication.
  const int64_t power = whole >> 4, half = power >> 1;
  return (high + (low + high * p)) * PowerOfTwo(half) * PowerOfTwo(power - half);
}

double Log(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  int64_t exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p52;
    exponent = -52;
  }
  // x = 2^exponent m with sqrt(1/2) < m < sqrt(2).
  const auto bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++exponent;
  }
  // With s = f / (2 + f), log(1 + f) = f - (f^2/2 - s (f^2/2 + sum)), and the sum is 2/3 s^2 + 2/5
  // s^4 + ..; |s| < 0.172 leaves less than 3e-20.
  const double f = m - 1, s = f / (2 + f), z = s * s;
  double sum = 2.0 / 25;
  for (int k = 23; k >= 3; k -= 2) sum = sum * z + 2.0 / k;
  sum *= z;
  // The product of the exponent, of 11 bits, with the first part of ln 2 is exact.
  constexpr double kLn2High = 0x1.62e42fefa2000p-1, kLn2Low = 0x1.9ef35793c7673p-41;
  const auto e = static_cast<double>(exponent);
  const double half_square = 0.5 * f * f;
  const double low = s * (half_square + sum) + e * kLn2Low;
  return e * kLn2High + (f - (half_square - low));
}

// Kahan's: the logarithm tells by how much e^x was rounded, so that the difference keeps its
// digits.
double Expm1(double x) {
  if (!(std::fabs(x) < 0.5)) return Exp(x) - 1;
  const double e = Exp(x);
  return e == 1 ? x : (e - 1) * (x / Log(e));
}

double Log1p(double x) {
  const double sum = 1 + x;
  const double lost = sum > 2 ? 1 - (sum - x) : x - (sum - 1);
  return sum > 0 ? Log(sum) + lost / sum : Log(sum);
}

double Sigmoid(double x) {
  const double e = Exp(-std::fabs(x));
  return (x < 0 ? e : 1.0) / (1 + e);
}

double Tanh(double x) {
  const double e = Expm1(-2 * std::fabs(x));
  return std::copysign(e / (2 + e), x);
}

double Erfc(double x) {
  constexpr double kFar = 28, kCentre = 3.75;  // beyond kFar it is 0
  if (std::isnan(x)) return x;
  const double a = std::min(std::fabs(x), kFar);
  const double v = (a - kCentre) / (a + kCentre);
  double p = 0;
  for (size_t k = std::size(kErfc); k-- > 0;) p = p * v + kErfc[k];
  // a^2 = near^2 + (a - near) (a + near), whose first product is exact.
  const double near = static_cast<float>(a);
  const double beyond = Exp(-near * near) * Exp(-(a - near) * (a + near)) * (p / (1 + 2 * a));
  return x < 0 ? 2 - beyond : beyond;
}

double Hypot(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  const double largest = std::max(std::fabs(x), std::fabs(y));
  if (largest == 0 || std::isinf(largest)) return largest;
  const double ratio = std::min(std::fabs(x), std::fabs(y)) / largest;
  return largest * std::sqrt(1 + ratio * ratio);
}

}  // namespace kinglet::portable
