// A vector's fixed point: rule 2 of docs/NUMERICS.md. C++17.
#ifndef KINGLET_KERNELS_CUDA_FIXED_POINT_H_
#define KINGLET_KERNELS_CUDA_FIXED_POINT_H_

#include <cmath>
#include <cstdint>

#include "kernels/cuda/step.h"

namespace kinglet::cuda {

// The 15-bit fixed point of a vector (rule 2): codes, and the step of its own.
struct FixedPoint : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Place x;  // [count] of reals
  uint32_t count;
  Place codes;  // [count] of int16
  Place step;   // [1] of reals

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return SharedMemory::Bytes<float>(kMaxParts); }
  static constexpr uint32_t kMaxParts = 256;
};

KINGLET_HOST_DEVICE inline void Run(const FixedPoint& p, const Work& work) {
  constexpr float kLimit = 16383.0f;
  const Lane& lane = work.lanes[work.unit];
  const float* x = work.At<float>(lane, p.x);
  float* const largest = SharedMemory(work.block).Take<float>(FixedPoint::kMaxParts);
  work.block.ForEach(FixedPoint::kMaxParts, [&](uint64_t part) {
    float most = 0.0f;
    for (uint64_t i = part; i < p.count; i += FixedPoint::kMaxParts) {
      const float magnitude = fabsf(x[i]);
      most = magnitude > most ? magnitude : most;
    }
    largest[part] = most;
  });
  for (uint32_t apart = FixedPoint::kMaxParts / 2; apart > 0; apart /= 2) {
    work.block.ForEach(apart, [&](uint64_t i) {
      largest[i] = largest[i + apart] > largest[i] ? largest[i + apart] : largest[i];
    });
  }
  const float step = largest[0] / kLimit;
  int16_t* codes = work.At<int16_t>(lane, p.codes);
  work.block.ForEach(p.count, [&](uint64_t i) {
    if (i == 0) *work.At<float>(lane, p.step) = step == 0.0f ? 1.0f : step;
    if (step == 0.0f) {
      codes[i] = 0;
      return;
    }
    const float q = x[i] / step;
    const float clamped = q >= -kLimit ? (q <= kLimit ? q : kLimit) : -kLimit;
    codes[i] = static_cast<int16_t>(rintf(clamped));
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_FIXED_POINT_H_
