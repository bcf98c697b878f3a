// Weights of a neural cache's pairs are multiples of 2^-40 and are added as integers, whose sum is
// exact in any order: rule 5 of docs/NUMERICS.md. C++17, for the device too.
#ifndef KINGLET_KERNELS_CACHE_WEIGHT_H_
#define KINGLET_KERNELS_CACHE_WEIGHT_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/host_device.h"

namespace kinglet {

// x, from 0 to 1, rounded to a multiple of 2^-40, half to even.
KINGLET_HOST_DEVICE inline float CacheWeight(float x) { return rintf(x * 0x1p40f) * 0x1p-40f; }
inline double CacheWeight(double x) { return std::rint(x * 0x1p40) * 0x1p-40; }

// Units of a sum that has a NaN; every other sum has fewer (format/limits.h, kMaxCacheCapacity).
inline constexpr uint64_t kNotANumberOfUnits = uint64_t{1} << 62;
template <class T>
inline constexpr T kWeightNotANumber = std::numeric_limits<T>::quiet_NaN();

// A weight in units of 2^-40, the sum of two such numbers, and such a number as a weight again,
// rounded once.
template <class T>
KINGLET_HOST_DEVICE uint64_t UnitsOf(T weight) {
  return weight >= T{0} ? static_cast<uint64_t>(static_cast<int64_t>(weight * T(0x1p40)))
                        : kNotANumberOfUnits;
}
KINGLET_HOST_DEVICE inline uint64_t AddUnits(uint64_t a, uint64_t b) {
  return a + b < kNotANumberOfUnits ? a + b : kNotANumberOfUnits;
}
template <class T>
KINGLET_HOST_DEVICE T WeightOfUnits(uint64_t units) {
  if (units >= kNotANumberOfUnits) return kWeightNotANumber<T>;
  return static_cast<T>(static_cast<int64_t>(units)) * T(0x1p-40);
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_CACHE_WEIGHT_H_
