// Products of matrices with vectors in floats: rule 4 of docs/NUMERICS.md. C++17.
#ifndef KINGLET_KERNELS_CUDA_REAL_PRODUCT_H_
#define KINGLET_KERNELS_CUDA_REAL_PRODUCT_H_

#include <cstdint>

#include "kernels/cuda/product.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// y[rows] = matrix * x in floats (rule 4). Each unit is some rows of one lane.
struct RealProduct {
  const float* matrix = nullptr;  // [rows, cols]
  uint32_t rows = 0, cols = 0;
  Vector x;
  Finish finish;
  Place y;
  TokenRange tokens;

  // Half a warp for each row.
  KINGLET_HOST_DEVICE uint32_t RowUnits(uint32_t warps) const {
    return (rows + 2 * warps - 1) / (2 * warps);
  }
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t warps) const {
    return lanes * RowUnits(warps);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

// Sums of `cols` terms of rows `first` and `first` + 1 below `rows`, each by half of the warp:
// term(partial, row, i) adds term i to a partial sum, use(row, sum) is called once.
template <class Term, class Use>
KINGLET_HOST_DEVICE void TwoRowSums(const Warp& warp, uint64_t first, uint64_t rows, uint64_t cols,
                                    const Term& term, const Use& use) {
  const auto row_of = [&](uint32_t thread) { return first + thread / kSumChains; };
  PerThread<RunningFold> totals{};
  for (uint64_t begin = 0; begin < cols; begin += kSumBlock) {
    const uint64_t end = cols - begin < kSumBlock ? cols : begin + kSumBlock;
    PerThread<float> chains;
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      chains[reg] = 0.0f;
      const uint64_t row = row_of(thread);
      if (row >= rows) return;
      if (cols < kShortSum && thread % kSumChains != 0) return;
      const uint32_t stride = cols < kShortSum ? 1 : kSumChains;
      for (uint64_t i = begin + thread % kSumChains; i < end; i += stride) {
        chains[reg] = term(chains[reg], row, i);
      }
    });
    // A short sum is its first chain as it is.
    for (uint32_t apart = cols < kShortSum ? 0 : kSumChains / 2; apart > 0; apart /= 2) {
      const PerThread<float> other = warp.Exchanged(chains, apart);
      warp.EachThread([&](uint32_t, uint32_t reg) { chains[reg] += other[reg]; });
    }
    warp.EachThread([&](uint32_t, uint32_t reg) { totals[reg].Push(chains[reg]); });
  }
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    if (thread % kSumChains != 0 || row_of(thread) >= rows) return;
    use(row_of(thread), totals[reg].Total());
  });
}

KINGLET_HOST_DEVICE inline void Run(const RealProduct& p, const Work& work) {
  const LaneUnit unit(work, p.RowUnits(work.block.warps()));
  const Lane& lane = work.lanes[unit.lane];
  if (!p.tokens.Contains(lane.token)) return;
  work.block.EachWarp([&](const Warp& warp) {
    const uint64_t first = (uint64_t{unit.part} * work.block.warps() + warp.index()) * 2;
    TwoRowSums(
        warp, first, p.rows, p.cols,
        [&](float sum, uint64_t row, uint64_t i) {
          return fmaf(p.matrix[row * p.cols + i], work.Real(lane, p.x, i), sum);
        },
        [&](uint64_t row, float sum) { work.At<float>(lane, p.y)[row] = p.finish(sum, row); });
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_REAL_PRODUCT_H_
