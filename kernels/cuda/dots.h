// Products of one vector with many rows, of which a block computes some: attention's scores, the
// neural cache's products. C++17.
#ifndef KINGLET_KERNELS_CUDA_DOTS_H_
#define KINGLET_KERNELS_CUDA_DOTS_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/block.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// Rows that a warp's thread works on at a time, so that the loads of all of them are under way
// together: memory is hundreds of cycles away, and one load after the other would wait for each.
inline constexpr uint32_t kRowsTogether = 4;

// Codes that lie together.
template <uint32_t kCount>
struct Codes {
  int16_t codes[kCount];
  // `from` is aligned to all of them.
  KINGLET_HOST_DEVICE static Codes Load(const int16_t* from) {
    Codes loaded;
    memcpy(&loaded, __builtin_assume_aligned(from, sizeof loaded), sizeof loaded);
    return loaded;
  }
};
// What vectors of codes are aligned to where all their lengths are a multiple of it.
inline constexpr uint32_t kCodesTogether = 4;

namespace internal {

// use(row, total) for each row < count, where a group of `group` threads makes a row's total:
// add(thread of the group, rows, totals) adds what its thread sees of kRowsTogether rows (the last
// one again where there are no more), and totals of the group's threads are added by halves.
template <class T, class Add, class Use>
KINGLET_HOST_DEVICE void GroupTotals(const Block& block, uint64_t count, uint32_t group,
                                     const Add& add, const Use& use) {
  block.EachWarp([&](const Warp& warp) {
    const uint32_t groups = kWarpThreads / group;  // of a warp, on neighbouring rows
    const uint64_t together = uint64_t{groups} * kRowsTogether;
    for (uint64_t first = warp.index() * together; first < count;
         first += block.warps() * together) {
      PerLane<T> totals[kRowsTogether];
      warp.EachLane([&](uint32_t thread, uint32_t slot) {
        uint64_t rows[kRowsTogether];
        T sums[kRowsTogether];
        for (uint32_t u = 0; u < kRowsTogether; ++u) {
          const uint64_t row = first + u * groups + thread / group;
          rows[u] = row < count ? row : count - 1;
          sums[u] = T{0};
        }
        add(thread % group, rows, sums);
        for (uint32_t u = 0; u < kRowsTogether; ++u) totals[u][slot] = sums[u];
      });
      for (uint32_t apart = group / 2; apart > 0; apart /= 2) {
        for (uint32_t u = 0; u < kRowsTogether; ++u) {
          const PerLane<T> other = warp.Exchanged(totals[u], apart);
          warp.EachLane([&](uint32_t, uint32_t slot) { totals[u][slot] += other[slot]; });
        }
      }
      warp.EachLane([&](uint32_t thread, uint32_t slot) {
        if (thread % group != 0) return;
        for (uint32_t u = 0; u < kRowsTogether; ++u) {
          const uint64_t row = first + u * groups + thread / group;
          if (row < count) use(row, totals[u][slot]);
        }
      });
    }
  });
}

}  // namespace internal

// use(row, q . row) for each row < count by rule 4, row_of(row) being its n reals. A section.
template <class RowOf, class Use>
KINGLET_HOST_DEVICE void RealDots(const Block& block, uint64_t count, uint64_t n, const float* q,
                                  const RowOf& row_of, const Use& use) {
  if (n < kShortSum || n > kSumBlock) {
    // One chain, or more of them than the threads of a group.
    block.ForEach(count, [&](uint64_t row) {
      const float* x = row_of(row);
      use(row, ThreadSum(n, [&](float sum, uint64_t i) { return fmaf(q[i], x[i], sum); }));
    });
    return;
  }
  // A thread for each chain: half a warp reads 64 bytes of a row at once.
  internal::GroupTotals<float>(
      block, count, kSumChains,
      [&](uint32_t chain, const uint64_t(&rows)[kRowsTogether], float(&sums)[kRowsTogether]) {
        const float* x[kRowsTogether];
        for (uint32_t u = 0; u < kRowsTogether; ++u) x[u] = row_of(rows[u]);
        for (uint64_t i = chain; i < n; i += kSumChains) {
          for (uint32_t u = 0; u < kRowsTogether; ++u) sums[u] = fmaf(q[i], x[u][i], sums[u]);
        }
      },
      use);
}

namespace internal {
template <class Sum, uint32_t kCount, class RowOf, class Use>
KINGLET_HOST_DEVICE void CodeDots(const Block& block, uint64_t count, uint64_t n, const int16_t* q,
                                  const RowOf& row_of, const Use& use) {
  // As many threads as a row has loads for, so that short rows leave few of them idle.
  uint32_t group = kWarpThreads;
  while (group > 4 && group / 2 * kCount >= n) group /= 2;
  GroupTotals<Sum>(
      block, count, group,
      [&](uint32_t thread, const uint64_t(&rows)[kRowsTogether], Sum(&sums)[kRowsTogether]) {
        const int16_t* x[kRowsTogether];
        for (uint32_t u = 0; u < kRowsTogether; ++u) x[u] = row_of(rows[u]);
        for (uint64_t i = thread * kCount; i < n; i += group * kCount) {
          const Codes<kCount> a = Codes<kCount>::Load(q + i);
          Codes<kCount> b[kRowsTogether];
          for (uint32_t u = 0; u < kRowsTogether; ++u) b[u] = Codes<kCount>::Load(x[u] + i);
          for (uint32_t u = 0; u < kRowsTogether; ++u) {
            for (uint32_t c = 0; c < kCount; ++c) {
              sums[u] += static_cast<Sum>(int32_t{a.codes[c]} * b[u].codes[c]);
            }
          }
        }
      },
      use);
}
}  // namespace internal

// use(row, q . row) for each row < count, exact, as Sum: int32_t where it holds every sum, else
// int64_t. `together`: n is a multiple of kCodesTogether, and so is where q and each row begin. A
// section.
template <class Sum, class RowOf, class Use>
KINGLET_HOST_DEVICE void CodeDots(const Block& block, uint64_t count, uint64_t n, bool together,
                                  const int16_t* q, const RowOf& row_of, const Use& use) {
  if (together) {
    internal::CodeDots<Sum, kCodesTogether>(block, count, n, q, row_of, use);
  } else {
    internal::CodeDots<Sum, 1>(block, count, n, q, row_of, use);
  }
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DOTS_H_
