// Products of a matrix with a vector in floats. C++17.
//
// Half a warp computes a row: its 16 threads are the 16 chains of rule 4 of docs/NUMERICS.md, and a
// butterfly of 4 shuffles folds them in the rule's order. No shared memory.
#ifndef KINGLET_KERNELS_CUDA_FLOAT_PRODUCT_H_
#define KINGLET_KERNELS_CUDA_FLOAT_PRODUCT_H_

#include <cmath>
#include <cstdint>

#include "kernels/cuda/dots.h"
#include "kernels/cuda/product.h"

namespace kinglet::cuda {

// y[rows] = finish(matrix * x). A work item is two rows per warp, of one lane.
struct RealProduct {
  const float* matrix = nullptr;  // [rows, cols]
  uint32_t rows = 0, cols = 0;
  Vector x;
  Finish finish;
  Place y;
  TokenRange tokens;

  KINGLET_HOST_DEVICE uint32_t RowItems(uint32_t warps) const { return DivideUp(rows, 2 * warps); }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t warps) const {
    return lanes * RowItems(warps);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

KINGLET_HOST_DEVICE inline void Run(const RealProduct& p, const Work& work) {
  const LaneItem item(work, p.RowItems(work.block.warps()));
  const Lane& lane = work.lanes[item.lane];
  if (!p.tokens.Contains(lane.word)) return;
  work.block.EachWarp([&](const Warp& warp) {
    const uint64_t first = (uint64_t{item.part} * work.block.warps() + warp.index()) * 2;
    TwoRowSums(
        warp, first, p.rows, p.cols,
        [&](float sum, uint64_t row, uint64_t i) {
          return fmaf(p.matrix[row * p.cols + i], work.Real(lane, p.x, i), sum);
        },
        [&](uint64_t row, float sum) { work.At<float>(lane, p.y)[row] = p.finish(sum, row); });
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_FLOAT_PRODUCT_H_
