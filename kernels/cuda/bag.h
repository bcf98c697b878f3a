// Bags of words (lists whose embeddings are averaged) and the element-wise part of their classifier
// (kernels/op.h, BagAppend, BagFeatures and ScaleShiftRelu). C++17.
//
// A thread computes an element. Each dimension's sum is one chain over the tokens in their order,
// as docs/NUMERICS.md requires, since every token adds one term.
#ifndef KINGLET_KERNELS_CUDA_BAG_H_
#define KINGLET_KERNELS_CUDA_BAG_H_

#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/cuda/vectors.h"

namespace kinglet::cuda {

// The state of a bag (kernels/op.h, BagAppend).
struct Bag {
  Place sum;    // [count] of floats
  Place added;  // [1] of uint32: the tokens in the sum
  bool has_largest;
  Place largest;  // [count] of floats
  uint32_t count;
};

// Adds the token's embedding to the bag, unless the token is padding. A work item is a lane.
struct AppendToBag : ByLane {
  Place embedded;  // [count] of floats
  Bag bag;
  bool has_padding;
  uint32_t padding;
};

KINGLET_HOST_DEVICE inline void Run(const AppendToBag& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  const bool first = lane.position == 0, counts = !p.has_padding || lane.token != p.padding;
  const float* x = work.At<float>(lane, p.embedded);
  float* sum = work.At<float>(lane, p.bag.sum);
  float* largest = work.At<float>(lane, p.bag.largest);
  uint32_t* added = work.At<uint32_t>(lane, p.bag.added);
  work.block.ForEach(p.bag.count, [&](uint64_t i) {
    const float before = first ? 0.0f : sum[i];
    sum[i] = counts ? before + x[i] : before;
    if (!p.bag.has_largest) return;
    const float entry = counts ? x[i] : 0.0f;
    largest[i] = first || entry > largest[i] ? entry : largest[i];
  });
  work.block.ForEach(1, [&](uint64_t) { *added = (first ? 0 : *added) + (counts ? 1 : 0); });
}

// out = sum / added, followed by the maximum if the bag has one.
struct FeaturesOfBag {
  Bag bag;
  Place out;  // [count] of floats, or [2 count] with a maximum

  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * ElementParts(bag.count);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

KINGLET_HOST_DEVICE inline void Run(const FeaturesOfBag& p, const Work& work) {
  EachElement(work, p.bag.count, [&](const Lane& lane, uint64_t i) {
    float* out = work.At<float>(lane, p.out);
    const auto added = static_cast<float>(*work.At<uint32_t>(lane, p.bag.added));
    out[i] = work.At<float>(lane, p.bag.sum)[i] / added;
    if (p.bag.has_largest) out[p.bag.count + i] = work.At<float>(lane, p.bag.largest)[i];
  });
}

// y = max(x * scale + shift, 0).
struct ScaleAndRelu : ByElement {
  Place x, y;          // [count] of floats
  const float* scale;  // [count]
  const float* shift;  // [count]
};

KINGLET_HOST_DEVICE inline void Run(const ScaleAndRelu& p, const Work& work) {
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    const float scaled = work.At<float>(lane, p.x)[i] * p.scale[i];
    const float shifted = scaled + p.shift[i];
    work.At<float>(lane, p.y)[i] =
        shifted < 0.0f ? 0.0f : shifted;  // a NaN stays a NaN, which the caller detects
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BAG_H_
