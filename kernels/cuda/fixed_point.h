// The 15-bit fixed point of a vector: rule 2 of docs/NUMERICS.md. C++17.
//
//   scale = max |x| / 16383,  codes[i] = round half to even(x[i] / scale)
//
// One thread block computes it for a lane: it finds the largest magnitude, then rounds each
// element. A maximum is exact in any order.
#ifndef KINGLET_KERNELS_CUDA_FIXED_POINT_H_
#define KINGLET_KERNELS_CUDA_FIXED_POINT_H_

#include <cmath>
#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/cuda/sums.h"
#include "kernels/numerics.h"

namespace kinglet::cuda {

struct FixedPoint : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Place x;  // [count] of floats
  uint32_t count;
  Place codes;  // [count] of int16
  Place scale;  // [1] of floats

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts);
  }
};

KINGLET_HOST_DEVICE inline void Run(const FixedPoint& p, const Work& work) {
  constexpr auto kLimit = static_cast<float>(kFixedPointLimit);
  const Lane& lane = work.lanes[work.item];
  const float* x = work.At<float>(lane, p.x);
  float* const parts = SharedMemory(work.block).Take<float>(kLargestParts);
  const float largest = BlockLargest(work.block, p.count, false, parts, [&](uint64_t i) {
    const float magnitude = fabsf(x[i]);
    return magnitude > 0.0f ? magnitude : 0.0f;  // a NaN counts as 0
  });
  const float scale = largest / kLimit;
  int16_t* codes = work.At<int16_t>(lane, p.codes);
  work.block.ForEach(p.count, [&](uint64_t i) {
    if (i == 0) *work.At<float>(lane, p.scale) = scale == 0.0f ? 1.0f : scale;
    if (scale == 0.0f) {
      codes[i] = 0;
      return;
    }
    const float q = x[i] / scale;
    const float clamped = q >= -kLimit ? (q <= kLimit ? q : kLimit) : -kLimit;
    codes[i] = static_cast<int16_t>(rintf(clamped));
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_FIXED_POINT_H_
