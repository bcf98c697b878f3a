// Weights of a neural cache's pairs are multiples of 2^-40 and are added as integers, whose sum is
// exact in any order: rule 4 of docs/NUMERICS.md. `ref64` keeps them as they are and adds them in
// storage order. C++17, for the device too.
#ifndef KINGLET_KERNELS_CACHE_WEIGHT_H_
#define KINGLET_KERNELS_CACHE_WEIGHT_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/host_device.h"

namespace kinglet {

// x, from 0 to 1, rounded to a multiple of 2^-40, half to even; of a double, x.
KINGLET_HOST_DEVICE inline float CacheWeight(float x) { return rintf(x * 0x1p40f) * 0x1p-40f; }
inline double CacheWeight(double x) { return x; }

// A sum of weights: in units of 2^-40, or, of doubles, as it is.
template <class T>
using CacheUnits = std::conditional_t<std::is_same_v<T, float>, uint64_t, double>;
// Units of a sum that has a NaN; every other sum has fewer (format/limits.h, kMaxCacheCapacity).
inline constexpr uint64_t kNotANumberOfUnits = uint64_t{1} << 62;
inline constexpr float kWeightNotANumber = std::numeric_limits<float>::quiet_NaN();

// A multiple of 2^-40, or NaN, in units.
template <class T>
KINGLET_HOST_DEVICE uint64_t WholeUnits(T x) {
  return x >= T{0} ? static_cast<uint64_t>(static_cast<int64_t>(x * T(0x1p40)))
                   : kNotANumberOfUnits;
}
KINGLET_HOST_DEVICE inline uint64_t UnitsOf(float weight) { return WholeUnits(weight); }
inline double UnitsOf(double weight) { return weight; }
KINGLET_HOST_DEVICE inline uint64_t AddUnits(uint64_t a, uint64_t b) {
  return a + b < kNotANumberOfUnits ? a + b : kNotANumberOfUnits;
}
inline double AddUnits(double a, double b) { return a + b; }
// A sum as a weight again, rounded once.
template <class T>
KINGLET_HOST_DEVICE T WeightOfUnits(CacheUnits<T> units) {
  if constexpr (std::is_same_v<T, float>) {
    if (units >= kNotANumberOfUnits) return kWeightNotANumber;
    return static_cast<float>(static_cast<int64_t>(units)) * 0x1p-40f;
  } else {
    return units;
  }
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_CACHE_WEIGHT_H_
