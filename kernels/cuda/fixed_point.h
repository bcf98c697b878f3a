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
  Place x;  // [count] of floats
  uint32_t count;
  Place codes;  // [count] of int16
  Place scale;  // [1] of floats

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts);
  }
};

// Block-wide: set(i, code) for each of n elements; returns the scale. `parts`: shared memory of
// kLargestParts floats.
template <class Set>
KINGLET_HOST_DEVICE float RoundToFixedPoint(const Block& block, const float* x, uint32_t n,
                                            float* parts, const Set& set) {
  constexpr auto kLimit = static_cast<float>(kFixedPointLimit);
  const float largest = BlockLargest(block, n, false, parts, [&](uint64_t i) {
    const float magnitude = fabsf(x[i]);
    return magnitude > 0.0f ? magnitude : 0.0f;  // a NaN counts as 0
  });
  const float scale = largest / kLimit;
  block.ForEach(n, [&](uint64_t i) {
    if (scale == 0.0f) return set(static_cast<uint32_t>(i), int16_t{0});
    const float q = x[i] / scale;
    const float clamped = q >= -kLimit ? (q <= kLimit ? q : kLimit) : -kLimit;
    set(static_cast<uint32_t>(i), static_cast<int16_t>(rintf(clamped)));
  });
  return scale == 0.0f ? 1.0f : scale;
}

KINGLET_HOST_DEVICE inline void Run(const FixedPoint& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  float* const parts = SharedMemory(work.block).Take<float>(kLargestParts);
  int16_t* const codes = work.At<int16_t>(lane, p.codes);
  const float scale = RoundToFixedPoint(work.block, work.At<float>(lane, p.x), p.count, parts,
                                        [codes](uint32_t i, int16_t code) { codes[i] = code; });
  work.block.ForEach(1, [&](uint64_t) { *work.At<float>(lane, p.scale) = scale; });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_FIXED_POINT_H_
