// Rows by the token's position: position rows that are added to a vector, biases of the attention
// queries, and rows of an encoded source that are stored and loaded (kernels/op.h). C++17.
//
// One thread block per lane; a thread has an element. Each element is one addition, or a copy.
#ifndef KINGLET_KERNELS_CUDA_POSITIONS_H_
#define KINGLET_KERNELS_CUDA_POSITIONS_H_

#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/ring.h"

namespace kinglet::cuda {

// y += row position mod window of a table.
struct AddRowOfPosition : ByLane {
  const float* table;  // [window, count]
  uint32_t window, count;
  Place y;  // [count] of floats
};

KINGLET_HOST_DEVICE inline void Run(const AddRowOfPosition& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  const float* row = p.table + RingSlot(lane.position, p.window) * p.count;
  float* const y = work.At<float>(lane, p.y);
  work.block.ForEach(p.count, [&](uint64_t i) { y[i] += row[i]; });
}

// y[h, i] += bias[h, i] for i < size; the heads of y are `stride` elements apart.
struct AddToHeads : ByLane {
  const float* bias;  // [heads, size]
  uint32_t heads, size, stride;
  Place y;  // [heads, stride] of floats
};

KINGLET_HOST_DEVICE inline void Run(const AddToHeads& p, const Work& work) {
  float* const y = work.At<float>(work.lanes[work.item], p.y);
  work.block.ForEach(uint64_t{p.heads} * p.size, [&](uint64_t i) {
    const auto item = static_cast<uint32_t>(i);  // a 64-bit division takes ten times as long
    y[item / p.size * p.stride + item % p.size] += p.bias[item];
  });
}

// Copies x to rows[position] if `stores`, else rows[position] to x.
struct CopyRow : ByLane {
  Vector x;
  Place rows;  // [window, x.count], of x's elements
  bool stores;
};

namespace internal {
template <class T>
KINGLET_HOST_DEVICE void CopyRowOf(const CopyRow& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  T* const x = work.At<T>(lane, p.x.place);
  T* const row = work.At<T>(lane, p.rows) + lane.position * p.x.count;
  const T* const from = p.stores ? x : row;
  T* const to = p.stores ? row : x;
  work.block.ForEach(p.x.count, [&](uint64_t i) { to[i] = from[i]; });
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const CopyRow& p, const Work& work) {
  WithElements(p.x.codes, [&](auto zero) { internal::CopyRowOf<decltype(zero)>(p, work); });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_POSITIONS_H_
