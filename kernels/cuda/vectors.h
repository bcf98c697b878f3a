// What is done to one vector at a time: normalising, quantising, adding. C++17.
#ifndef KINGLET_KERNELS_CUDA_VECTORS_H_
#define KINGLET_KERNELS_CUDA_VECTORS_H_

#include <cstdint>

#include "kernels/cuda/step.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// Elements of a unit, where each element of a vector is computed for itself.
inline constexpr uint32_t kElementPart = 1024;
KINGLET_HOST_DEVICE constexpr uint32_t ElementParts(uint32_t count) {
  return (count + kElementPart - 1) / kElementPart;
}
// Of operations whose units are such parts of a vector.
struct ByElement {
  uint32_t count;
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const {
    return lanes * ElementParts(count);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};
// f(lane, i) for the unit's elements of a vector of `count`. A section.
template <class F>
KINGLET_HOST_DEVICE void EachElement(const Work& work, uint32_t count, const F& f) {
  const LaneUnit unit(work, ElementParts(count));
  const Lane& lane = work.lanes[unit.lane];
  const uint64_t first = uint64_t{unit.part} * kElementPart;
  const uint64_t left = count - first;
  work.block.ForEach(left < kElementPart ? left : kElementPart,
                     [&](uint64_t i) { f(lane, first + i); });
}

// y = (x - mean) / sqrt(variance + epsilon) * gain + bias.
struct NormaliseVector : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Place x, y;  // [count] of reals
  uint32_t count;
  const float* gain;  // [count]
  const float* bias;  // [count]
  float epsilon;

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return 2 * SharedMemory::Bytes<float>(BlockSumFloats(count));
  }
};

// Sections: y = (x - mean) / sqrt(variance + epsilon), times gain, plus bias, where they are not
// null; y may be x. `sums` and `squares` are shared memory of BlockSumFloats(n).
KINGLET_HOST_DEVICE inline void Normalise(const Block& block, const float* x, uint32_t n,
                                          float epsilon, const float* gain, const float* bias,
                                          float* y, float* sums, float* squares) {
  const auto count = static_cast<float>(n);
  const float mean =
      BlockSum(block, n, sums, [&](float sum, uint64_t i) { return sum + x[i]; }) / count;
  const float variance = BlockSum(block, n, squares,
                                  [&](float sum, uint64_t i) {
                                    const float centred = x[i] - mean;
                                    return fmaf(centred, centred, sum);
                                  }) /
                         count;
  const float deviation = sqrtf(variance + epsilon);
  block.ForEach(n, [&](uint64_t i) {
    float value = (x[i] - mean) / deviation;
    if (gain != nullptr) value *= gain[i];
    if (bias != nullptr) value += bias[i];
    y[i] = value;
  });
}

KINGLET_HOST_DEVICE inline void Run(const NormaliseVector& p, const Work& work) {
  const Lane& lane = work.lanes[work.unit];
  SharedMemory shared(work.block);
  float* const sums = shared.Take<float>(BlockSumFloats(p.count));
  float* const squares = shared.Take<float>(BlockSumFloats(p.count));
  Normalise(work.block, work.At<float>(lane, p.x), p.count, p.epsilon, p.gain, p.bias,
            work.At<float>(lane, p.y), sums, squares);
}

struct QuantiseVector : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Place x;      // [count] of reals
  Place codes;  // [count] of int16
  uint32_t count;
  Rounding rounding;
};

KINGLET_HOST_DEVICE inline void Run(const QuantiseVector& p, const Work& work) {
  const Lane& lane = work.lanes[work.unit];
  const float* x = work.At<float>(lane, p.x);
  int16_t* codes = work.At<int16_t>(lane, p.codes);
  work.block.ForEach(p.count, [&](uint64_t i) { codes[i] = p.rounding(x[i]); });
}

// y += x.
struct AddVector : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Vector x;
  Place y;
};

KINGLET_HOST_DEVICE inline void Run(const AddVector& p, const Work& work) {
  const Lane& lane = work.lanes[work.unit];
  float* y = work.At<float>(lane, p.y);
  work.block.ForEach(p.x.count, [&](uint64_t i) { y[i] += work.Real(lane, p.x, i); });
}

// y[0, count) += x[0].
struct AddOne : ByElement {
  Place x, y;
};

KINGLET_HOST_DEVICE inline void Run(const AddOne& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    work.At<float>(lane, p.y)[i] += *work.At<float>(lane, p.x);
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_VECTORS_H_
