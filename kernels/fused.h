// Fused multiply-add: a * b + c, rounded once (rule 7 of docs/NUMERICS.md). C++17, for the device
// too.
#ifndef KINGLET_KERNELS_FUSED_H_
#define KINGLET_KERNELS_FUSED_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

namespace kinglet {

// For machines without the instruction, and C libraries whose fmaf rounds twice, by two sums in
// double. The product is exact there. The sum
// is rounded to 53 bits, and rounding it again to float is wrong only where it lies halfway between
// two floats and was rounded towards or away from that place. All such places have 28 zeros at the
// end, denormal results too. There the error of the sum decides (TwoSum, Knuth): the last bit is
// set on the side of the error, so that the second rounding sees it.
inline float FusedByDouble(float a, float b, float c) {
  const double product = double{a} * double{b};
  double sum = product + double{c};
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  if ((bits & 0xFFFFFFF) == 0) {
    const double other = sum - product;
    const double error = (product - (sum - other)) + (double{c} - other);
    if (error > 0 || error < 0) {  // not of an infinity, whose error is NaN
      bits += (error > 0) == (sum > 0) ? 1 : ~uint64_t{0};
      std::memcpy(&sum, &bits, sizeof sum);
    }
  }
  return static_cast<float>(sum);
}

KINGLET_HOST_DEVICE inline float Fused(float a, float b, float c) {
#if defined(__GLIBC__) || defined(__aarch64__)
  return fmaf(a, b, c);
#else
  return FusedByDouble(a, b, c);
#endif
}
inline double Fused(double a, double b, double c) { return std::fma(a, b, c); }

}  // namespace kinglet

#endif  // KINGLET_KERNELS_FUSED_H_
