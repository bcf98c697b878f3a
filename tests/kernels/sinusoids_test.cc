#include "kernels/sinusoids.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "converters/splitmix.h"

namespace kinglet::sinusoids_test {
namespace {

// The error in units of the last place of the correct result.
double ErrorInUlps(double value, long double exact) {
  const auto rounded = static_cast<double>(exact);
  const double ulp = std::nextafter(std::fabs(rounded), 2.0) - std::fabs(rounded);
  return static_cast<double>(std::fabs(static_cast<long double>(value) - exact)) / ulp;
}

// Compared with the C library in extended precision, if that has more than double's 53 bits.
TEST(Sinusoids, AreWithinOneUnitInTheLastPlace) {
  static_assert(std::numeric_limits<long double>::digits > 60);
  SplitMix64 random(7);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const int exponent = static_cast<int>(random.Below(43)) - 20;  // up to 2^23
    const double x = std::ldexp(static_cast<double>(random.Next() >> 11), exponent - 53);
    for (const double angle : {x, -x}) {
      worst = std::max(worst, ErrorInUlps(Sine(angle), sinl(angle)));
      worst = std::max(worst, ErrorInUlps(Cosine(angle), cosl(angle)));
    }
  }
  EXPECT_LT(worst, 1.0);
}

TEST(Sinusoids, NearMultiplesOfHalfPi) {
  for (int n = 1; n < 2000000; n += n < 1000 ? 1 : 997) {
    const double x = static_cast<double>(n * 1.5707963267948966192313216916397514L);
    EXPECT_LT(ErrorInUlps(Sine(x), sinl(x)), 1.0) << n;
    EXPECT_LT(ErrorInUlps(Cosine(x), cosl(x)), 1.0) << n;
  }
}

TEST(Sinusoids, KnownValues) {
  EXPECT_EQ(Sine(0), 0);
  EXPECT_EQ(Cosine(0), 1);
  // Abramowitz & Stegun, table 4.6.
  EXPECT_NEAR(Sine(1), 0.84147098480789650665, 1e-16);
  EXPECT_NEAR(Cosine(1), 0.54030230586813971740, 1e-16);
  EXPECT_NEAR(Sine(1.5), 0.99749498660405443094, 1e-16);
  EXPECT_NEAR(Cosine(1.5), 0.07073720166770291009, 1e-17);
}

TEST(Sinusoids, RowsAreSinesThenCosines) {
  const std::vector<float> frequencies = {1.0f, 0.1f};
  double row[4];
  RelativeSinusoidRow<double>(frequencies, 3, false, row);
  EXPECT_EQ(row[0], Sine(3));
  EXPECT_EQ(row[1], Sine(3 * static_cast<double>(0.1f)));
  EXPECT_EQ(row[2], Cosine(3));
  EXPECT_EQ(row[3], Cosine(3 * static_cast<double>(0.1f)));
  // fairseq rounds the angle and the function's value to float32.
  double y[4] = {1, 1, 1, 1};
  AddAbsoluteSinusoids<double>(frequencies, 3, y);
  EXPECT_EQ(y[1], 1 + static_cast<double>(static_cast<float>(std::sin(double{3 * 0.1f}))));
  EXPECT_EQ(y[2], 1 + static_cast<double>(static_cast<float>(std::cos(3.0))));
}

}  // namespace
}  // namespace kinglet::sinusoids_test
