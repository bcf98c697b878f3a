// Sinusoidal position encodings (Vaswani et al. 2017; Dai et al. 2019), from sines and cosines that
// have the same bits on every machine.
#ifndef KINGLET_KERNELS_SINUSOIDS_H_
#define KINGLET_KERNELS_SINUSOIDS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace kinglet {

// The sine, from additions, multiplications and a rounding only; error below 1 ulp. REQUIRES: |x| <
// 2^23.
double Sine(double x);
double Cosine(double x);

// R(distance) of format/blocks.h, RelativeSinusoids: the sines of distance * f for all
// frequencies, then the cosines, to out[2 frequencies]. T: the backend's real type. `rounded`:
// angles and entries are float32 in all backends.
template <class T>
void RelativeSinusoidRow(std::span<const float> frequencies, uint32_t distance, bool rounded,
                         T* out) {
  const size_t half = frequencies.size();
  for (size_t j = 0; j < half; ++j) {
    if (rounded) {
      const double angle = static_cast<float>(distance) * frequencies[j];
      out[j] = static_cast<T>(static_cast<float>(Sine(angle)));
      out[half + j] = static_cast<T>(static_cast<float>(Cosine(angle)));
      continue;
    }
    const double angle = static_cast<double>(distance) * static_cast<double>(frequencies[j]);
    out[j] = static_cast<T>(Sine(angle));
    out[half + j] = static_cast<T>(Cosine(angle));
  }
}

// y += the row of fairseq's table for `position` (format/blocks.h, AbsoluteSinusoids). Angles and
// entries are float32 in all backends, as in fairseq.
template <class T>
void AddAbsoluteSinusoids(std::span<const float> frequencies, uint32_t position, T* y) {
  const size_t half = frequencies.size();
  for (size_t j = 0; j < half; ++j) {
    const float angle = static_cast<float>(position) * frequencies[j];
    y[j] += static_cast<T>(static_cast<float>(Sine(angle)));
    y[half + j] += static_cast<T>(static_cast<float>(Cosine(angle)));
  }
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_SINUSOIDS_H_
