// Sums of products for each row of a matrix, computed by a thread block: products with floats
// (float_product.h), attention scores, and the neural cache's keys times the hidden state. C++17.
//
// Half a warp has a row, so its loads are next to each other in memory. Sums of floats follow rule
// 4 of docs/NUMERICS.md: 16 threads compute the 16 chains, and the butterfly over them adds chains
// 8, 4, 2 and 1 apart as the rule does. Sums of integers are exact in any order.
#ifndef KINGLET_KERNELS_CUDA_DOTS_H_
#define KINGLET_KERNELS_CUDA_DOTS_H_

#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// By one warp: the sums of those of rows `first` and `first` + 1 that are below `rows`, each by
// half of the warp. A sum has `cols` terms: term(partial, row, i) returns partial plus term i of
// the row. Calls use(row, sum) once for each row.
template <class Term, class Use>
KINGLET_HOST_DEVICE void TwoRowSums(const Warp& warp, uint64_t first, uint64_t rows, uint64_t cols,
                                    const Term& term, const Use& use) {
  const auto row_of = [&](uint32_t thread) { return first + thread / kSumChains; };
  PerThread<RunningFold> totals;
  for (uint64_t begin = 0; begin < cols; begin += kSumTile) {
    const uint64_t end = begin + Least(cols - begin, uint64_t{kSumTile});
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
    // A short sum is its first chain.
    if (cols >= kShortSum) {
      warp.Reduce(chains, kSumChains / 2, 1, [](float a, float b) { return a + b; });
    }
    warp.EachThread([&](uint32_t, uint32_t reg) { totals[reg].Push(chains[reg]); });
  }
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    if (thread % kSumChains != 0 || row_of(thread) >= rows) return;
    use(row_of(thread), totals[reg].Total());
  });
}

namespace internal {
// Block-wide: two(warp, first) for every second row `first` < rows.
template <class Two>
KINGLET_HOST_DEVICE void EachTwoRows(const Block& block, uint64_t rows, const Two& two) {
  block.EachWarp([&](const Warp& warp) {
    for (uint64_t first = 2 * warp.index(); first < rows; first += 2 * block.warps()) {
      two(warp, first);
    }
  });
}
}  // namespace internal

// Block-wide: TwoRowSums of all rows.
template <class Term, class Use>
KINGLET_HOST_DEVICE void BlockRowSums(const Block& block, uint64_t rows, uint64_t cols,
                                      const Term& term, const Use& use) {
  internal::EachTwoRows(block, rows, [&](const Warp& warp, uint64_t first) {
    TwoRowSums(warp, first, rows, cols, term, use);
  });
}

// Block-wide: use(row, sum) for each row, where the sum of term(row, i) for i < cols, integers of
// 32 bits, is exact in 64.
template <class Term, class Use>
KINGLET_HOST_DEVICE void BlockRowIntegers(const Block& block, uint64_t rows, uint64_t cols,
                                          const Term& term, const Use& use) {
  internal::EachTwoRows(block, rows, [&](const Warp& warp, uint64_t first) {
    const auto row_of = [&](uint32_t thread) { return first + thread / kSumChains; };
    PerThread<int64_t> sums;
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      sums[reg] = 0;
      if (row_of(thread) >= rows) return;
        // Loads of several terms are in flight together.
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 4
#endif
      for (uint64_t i = thread % kSumChains; i < cols; i += kSumChains) {
        sums[reg] += term(row_of(thread), i);
      }
    });
    warp.Reduce(sums, kSumChains / 2, 1, [](int64_t a, int64_t b) { return a + b; });
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      if (thread % kSumChains == 0 && row_of(thread) < rows) use(row_of(thread), sums[reg]);
    });
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DOTS_H_
