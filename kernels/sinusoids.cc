#include "kernels/sinusoids.h"

#include <cmath>

namespace kinglet {
namespace {

// x = quarters * pi/2 + high + low with |high| <= pi/4 and low below its last bit.
struct Reduced {
  int64_t quarters;
  double high, low;
};

Reduced Reduce(double x) {
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  // pi/2 in three parts of 30 bits, whose products with an integer of 23 bits are exact, and the
  // rest.
  constexpr double kPart1 = 0x1.921fb54p+0;
  constexpr double kPart2 = 0x1.10b46118p-30;
  constexpr double kPart3 = 0x1.313198a000000p-61;
  constexpr double kPart4 = 0x1.701b839a25205p-92;
  const double quarters = std::floor(x * kTwoOverPi + 0.5);
  // The differences, each with its rounding error.
  const double first = x - quarters * kPart1;  // exact: both are near each other, or quarters is 0
  const double part2 = quarters * kPart2, part3 = quarters * kPart3;
  const double second = first - part2;
  const double lost2 = (first - second) - part2;
  const double third = second - part3;
  const double lost3 = (second - third) - part3;
  const double rest = (lost2 + lost3) - quarters * kPart4;
  const double sum = third + rest;
  return {static_cast<int64_t>(quarters), sum, (third - sum) + rest};
}

// Taylor's series: |x| <= pi/4 leaves x^19/19! < 1e-19.
double SineOfReduced(double x, double low) {
  const double z = x * x;
  double p = 1.0 / 355687428096000.0;  // 1/17!
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return x + (x * z * p + low * (1.0 - 0.5 * z));
}

double CosineOfReduced(double x, double low) {
  const double z = x * x;
  double p = -1.0 / 6402373705728000.0;  // 1/18!
  p = p * z + 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  const double half_square = 0.5 * z;
  const double high = 1.0 - half_square;
  return high + (((1.0 - high) - half_square) + (z * z * p - x * low));
}

// The sine of x + `ahead` quarters of a turn.
double SineAhead(double x, int64_t ahead) {
  const Reduced r = Reduce(x);
  const int64_t quarter = (r.quarters + ahead) & 3;
  const double value =
      (quarter & 1) != 0 ? CosineOfReduced(r.high, r.low) : SineOfReduced(r.high, r.low);
  return quarter >= 2 ? -value : value;
}

}  // namespace

double Sine(double x) { return SineAhead(x, 0); }
double Cosine(double x) { return SineAhead(x, 1); }

}  // namespace kinglet
