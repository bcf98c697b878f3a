// Rounding floats to integers: activation quantisers and the 15-bit fixed point of rule 2.
#ifndef KINGLET_KERNELS_REF_QUANTISE_H_
#define KINGLET_KERNELS_REF_QUANTISE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "format/blocks.h"
#include "kernels/numerics.h"

namespace kinglet::ref {

// round_half_even(clamp(x, -max_abs, max_abs) / scale). Written with comparisons so that NaN, which
// only a model that overflows can produce, has a defined answer (-max_abs) on every backend.
template <class T>
int32_t QuantisedCode(T x, const ActivationQuantiser& quantiser) {
  const T limit = static_cast<T>(quantiser.max_abs);
  const T clamped = x >= -limit ? (x <= limit ? x : limit) : -limit;
  return static_cast<int32_t>(std::nearbyint(clamped / static_cast<T>(quantiser.scale)));
}

// The scale of a vector's 15-bit fixed point: its largest magnitude / kFixedPointLimit, in float.
inline float FixedPointScale(const float* x, size_t n) {
  float largest = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest / static_cast<float>(kFixedPointLimit);
}

// round_half_even(x / scale) within +-kFixedPointLimit; 0 where the scale is 0.
inline int16_t FixedPointCode(float x, float scale) {
  if (scale == 0.0f) return 0;
  constexpr auto kLimit = static_cast<float>(kFixedPointLimit);
  const float q = x / scale;
  const float clamped = q >= -kLimit ? (q <= kLimit ? q : kLimit) : -kLimit;
  return static_cast<int16_t>(std::nearbyint(clamped));
}

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_QUANTISE_H_
