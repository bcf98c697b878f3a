// Nodes on one vector of a lane: norms, activation functions, quantisation, additions
// (kernels/op.h, LayerNorm, RootMeanSquareNorm, ApplyActivation, Quantise, Add, AddScalar). C++17.
//
// A thread block has a complete vector (ByLane) or 1,024 elements of a vector (ByElement); a thread
// has an element. Only norms need shared memory, for the chains of their sums, which follow rule 4
// of docs/NUMERICS.md.
#ifndef KINGLET_KERNELS_CUDA_VECTORS_H_
#define KINGLET_KERNELS_CUDA_VECTORS_H_

#include <cmath>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// Elements of a work item of ByElement.
inline constexpr uint32_t kElementPart = 1024;
KINGLET_HOST_DEVICE constexpr uint32_t ElementParts(uint32_t count) {
  return DivideUp(count, uint32_t{kElementPart});
}
// Base of nodes whose work item is kElementPart elements of a lane's vector.
struct ByElement {
  uint32_t count;
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * ElementParts(count);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};
// Block-wide: f(lane, i) for every element i of the work item, of a vector of `count`.
template <class F>
KINGLET_HOST_DEVICE void EachElement(const Work& work, uint32_t count, const F& f) {
  const LaneItem item(work, ElementParts(count));
  const Lane& lane = work.lanes[item.lane];
  const uint64_t first = uint64_t{item.part} * kElementPart;
  work.block.ForEach(Least(count - first, uint64_t{kElementPart}),
                     [&](uint64_t i) { f(lane, first + i); });
}

// y = (x - mean) / sqrt(variance + epsilon) * gain + bias. A work item is a lane.
struct NormaliseVector : ByLane {
  Place x, y;  // [count] of floats
  uint32_t count;
  const float* gain;  // [count]
  const float* bias;  // [count]
  float epsilon;

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return 2 * SharedMemory::Bytes<float>(BlockSumFloats(count));
  }
};

// Block-wide: y = (x - mean) / sqrt(variance + epsilon), times gain and plus bias if these are not
// null. y may be x. `sums` and `squares` are shared memory of BlockSumFloats(n) each.
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
  const Lane& lane = work.lanes[work.item];
  SharedMemory shared(work.block);
  float* const sums = shared.Take<float>(BlockSumFloats(p.count));
  float* const squares = shared.Take<float>(BlockSumFloats(p.count));
  Normalise(work.block, work.At<float>(lane, p.x), p.count, p.epsilon, p.gain, p.bias,
            work.At<float>(lane, p.y), sums, squares);
}

// y = x / sqrt(mean of x^2 + epsilon). A work item is a lane.
struct ScaleToUnitMeanSquare : ByLane {
  Place x, y;  // [count] of floats
  uint32_t count;
  float epsilon;

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(BlockSumFloats(count));
  }
};

KINGLET_HOST_DEVICE inline void Run(const ScaleToUnitMeanSquare& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  SharedMemory shared(work.block);
  float* const chains = shared.Take<float>(BlockSumFloats(p.count));
  const float* x = work.At<float>(lane, p.x);
  float* y = work.At<float>(lane, p.y);
  const float square = BlockSum(work.block, p.count, chains,
                                [&](float sum, uint64_t i) { return fmaf(x[i], x[i], sum); }) /
                       static_cast<float>(p.count);
  const float deviation = sqrtf(square + p.epsilon);
  work.block.ForEach(p.count, [&](uint64_t i) { y[i] = x[i] / deviation; });
}

// x = activation(x).
struct ActivateVector : ByElement {
  Place x;  // [count] of floats
  Activation activation;
};

KINGLET_HOST_DEVICE inline void Run(const ActivateVector& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    float* const x = work.At<float>(lane, p.x) + i;
    *x = Activated(p.activation, *x);
  });
}

// codes = round(clamp(x) / scale). A work item is a lane.
struct QuantiseVector : ByLane {
  Place x;      // [count] of floats
  Place codes;  // [count] of int16
  uint32_t count;
  Rounding rounding;
};

KINGLET_HOST_DEVICE inline void Run(const QuantiseVector& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  const float* x = work.At<float>(lane, p.x);
  int16_t* codes = work.At<int16_t>(lane, p.codes);
  work.block.ForEach(p.count, [&](uint64_t i) { codes[i] = p.rounding(x[i]); });
}

// y += x. A work item is a lane.
struct AddVector : ByLane {
  Vector x;
  Place y;
};

KINGLET_HOST_DEVICE inline void Run(const AddVector& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  float* y = work.At<float>(lane, p.y);
  work.block.ForEach(p.x.count, [&](uint64_t i) { y[i] += work.Real(lane, p.x, i); });
}

// y[i] += x[0] for i < count.
struct AddOne : ByElement {
  Place x, y;
};

KINGLET_HOST_DEVICE inline void Run(const AddOne& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    work.At<float>(lane, p.y)[i] += *work.At<float>(lane, p.x);
  });
}

// y [count] = the parts one after the other, followed by zeros.
struct JoinedPart {
  Place x;              // [count] of floats
  uint64_t count, end;  // its last element is y[end - 1]
};
struct JoinVectors : ByElement {
  const JoinedPart* parts;  // [part_count]
  uint32_t part_count;
  Place y;
};

KINGLET_HOST_DEVICE inline void Run(const JoinVectors& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    float value = 0.0f;
    for (uint32_t k = 0; k < p.part_count; ++k) {
      const JoinedPart& part = p.parts[k];
      if (i >= part.end || i + part.count < part.end) continue;
      value = work.At<float>(lane, part.x)[i + part.count - part.end];
    }
    work.At<float>(lane, p.y)[i] = value;
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_VECTORS_H_
