// Dot products of one vector q with many rows, computed by a thread block or a warp (a `Team`), for
// attention scores and for the neural cache's keys times the hidden state. C++17.
//
// A group of neighbouring threads of a warp computes the dot product of one row, so its loads are
// next to each other in memory. Float dot products follow rule 4 of docs/NUMERICS.md: 16 threads
// compute the 16 chains, and the butterfly over the group adds chains 8, 4, 2 and 1 apart as the
// rule does. Products of codes are integers, exact in any order.
#ifndef KINGLET_KERNELS_CUDA_DOTS_H_
#define KINGLET_KERNELS_CUDA_DOTS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/block.h"
#include "kernels/cuda/sums.h"
#include "kernels/nine_bit_row.h"

namespace kinglet::cuda {

// Rows that a thread works on at a time. Their loads are in flight together: a load from global
// memory takes hundreds of cycles, and loads one after the other would each wait.
inline constexpr uint32_t kRowsTogether = 4;

// Neighbouring codes that are loaded at once.
template <uint32_t kCount>
struct Codes {
  int16_t codes[kCount];
  // `from` is aligned to sizeof(Codes).
  KINGLET_HOST_DEVICE static Codes Load(const int16_t* from) { return LoadAligned<Codes>(from); }
};
// The codes of a row, from code `first` on, a multiple of 8.
struct NineBitCodes {
  NineBitRow layout;
  const uint8_t* row;
  uint64_t first = 0;
};
template <uint32_t kCount>
KINGLET_HOST_DEVICE Codes<kCount> LoadCodes(const int16_t* row, uint64_t i) {
  return Codes<kCount>::Load(row + i);
}
// REQUIRES: i is a multiple of kCount, which divides 8.
template <uint32_t kCount>
KINGLET_HOST_DEVICE Codes<kCount> LoadCodes(const NineBitCodes& codes, uint64_t i) {
  const uint64_t at = codes.first + i;
  uint8_t low[kCount];
  memcpy(low, __builtin_assume_aligned(codes.row + at, sizeof low), sizeof low);
  const int32_t signs = codes.row[codes.layout.SignByte(at)] >> (at % 8);
  Codes<kCount> loaded;
  for (uint32_t c = 0; c < kCount; ++c) {
    loaded.codes[c] = static_cast<int16_t>(low[c] - ((signs >> c & 1) << 8));
  }
  return loaded;
}
// Block-wide: stores n codes as codes [first, first + n) of a row; both are multiples of 8.
template <class Team>
KINGLET_HOST_DEVICE void StoreNineBits(const Team& block, const int16_t* codes, uint64_t n,
                                       const NineBitRow& layout, uint64_t first, uint8_t* row) {
  block.ForEach(NineBitRow::PartBytes(n), [&](uint64_t k) {
    const uint64_t at = layout.PartByteAt(first, n, k);
    row[at] = layout.Byte(at, [=](uint64_t i) { return codes[i - first]; });
  });
}
// Block-wide: stores the zeros after a row's codes, whose number is a multiple of 8.
template <class Team>
KINGLET_HOST_DEVICE void PadNineBits(const Team& block, const NineBitRow& layout, uint8_t* row) {
  const uint64_t n = layout.Padded() - layout.count;
  if (n == 0) return;
  block.ForEach(NineBitRow::PartBytes(n),
                [&](uint64_t k) { row[layout.PartByteAt(layout.count, n, k)] = 0; });
}
// Vectors of codes are aligned to this many codes where all their lengths are multiples of it.
inline constexpr uint32_t kCodesTogether = 4;

namespace internal {

// Block-wide: use(row, total) for each row < count. A group of `group` threads (a power of 2)
// computes the total of a row: add(thread of the group, rows, totals) adds the thread's part of
// kRowsTogether rows, then the totals of the group's threads are added by halves. Beyond the last
// row, `rows` repeats the last row.
template <class T, class Team, class Add, class Use>
KINGLET_HOST_DEVICE void GroupTotals(const Team& block, uint64_t count, uint32_t group,
                                     const Add& add, const Use& use) {
  block.EachWarp([&](const Warp& warp) {
    const uint32_t groups = kWarpThreads / group;  // of a warp; neighbours have neighbouring rows
    const uint64_t rows_of_warp = uint64_t{groups} * kRowsTogether;
    for (uint64_t first = warp.index() * rows_of_warp; first < count;
         first += block.warps() * rows_of_warp) {
      PerThread<T> totals[kRowsTogether];
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        uint64_t rows[kRowsTogether];
        T sums[kRowsTogether];
        for (uint32_t u = 0; u < kRowsTogether; ++u) {
          const uint64_t row = first + u * groups + thread / group;
          rows[u] = row < count ? row : count - 1;
          sums[u] = T{0};
        }
        add(thread % group, rows, sums);
        for (uint32_t u = 0; u < kRowsTogether; ++u) totals[u][reg] = sums[u];
      });
      for (uint32_t distance = group / 2; distance > 0; distance /= 2) {
        for (uint32_t u = 0; u < kRowsTogether; ++u) {
          const PerThread<T> other = warp.Exchanged(totals[u], distance);
          warp.EachThread([&](uint32_t, uint32_t reg) { totals[u][reg] += other[reg]; });
        }
      }
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        if (thread % group != 0) return;
        for (uint32_t u = 0; u < kRowsTogether; ++u) {
          const uint64_t row = first + u * groups + thread / group;
          if (row < count) use(row, totals[u][reg]);
        }
      });
    }
  });
}

}  // namespace internal

// Block-wide: use(row, q . row) for each row < count by rule 4. row_of(row) points to the n floats
// of a row.
template <class Team, class RowOf, class Use>
KINGLET_HOST_DEVICE void RealDots(const Team& block, uint64_t count, uint64_t n, const float* q,
                                  const RowOf& row_of, const Use& use) {
  if (n < kShortSum || n > kSumTile) {
    // One chain, or more chains than a group has threads: a thread for each row.
    block.ForEach(count, [&](uint64_t row) {
      const float* x = row_of(row);
      use(row, ThreadSum(n, [&](float sum, uint64_t i) { return fmaf(q[i], x[i], sum); }));
    });
    return;
  }
  // A thread for each of the 16 chains: half a warp reads 64 bytes of a row at once.
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
template <class Sum, uint32_t kCount, class Team, class RowOf, class Use>
KINGLET_HOST_DEVICE void CodeDots(const Team& block, uint64_t count, uint64_t n, const int16_t* q,
                                  const RowOf& row_of, const Use& use) {
  // No more threads than a row has loads, so that few are idle on short rows.
  uint32_t group = kWarpThreads;
  while (group > 4 && group / 2 * kCount >= n) group /= 2;
  GroupTotals<Sum>(
      block, count, group,
      [&](uint32_t thread, const uint64_t(&rows)[kRowsTogether], Sum(&sums)[kRowsTogether]) {
        decltype(row_of(0)) x[kRowsTogether];
        for (uint32_t u = 0; u < kRowsTogether; ++u) x[u] = row_of(rows[u]);
        for (uint64_t i = thread * kCount; i < n; i += group * kCount) {
          const Codes<kCount> a = LoadCodes<kCount>(q, i);
          Codes<kCount> b[kRowsTogether];
          for (uint32_t u = 0; u < kRowsTogether; ++u) b[u] = LoadCodes<kCount>(x[u], i);
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

// How rows of codes are multiplied.
struct CodeRows {
  bool wide;     // a sum may need more than 32 bits
  bool aligned;  // n, and where q and each row begin, are multiples of kCodesTogether
};

// Block-wide: use(row, q . row) for each row < count. The sum is exact, of type Sum: int64_t, or
// int32_t. REQUIRES: int32_t can represent every sum.
template <class Sum, class Team, class RowOf, class Use>
KINGLET_HOST_DEVICE void CodeDots(const Team& block, uint64_t count, uint64_t n, bool aligned,
                                  const int16_t* q, const RowOf& row_of, const Use& use) {
  if (aligned) {
    internal::CodeDots<Sum, kCodesTogether>(block, count, n, q, row_of, use);
  } else {
    internal::CodeDots<Sum, 1>(block, count, n, q, row_of, use);
  }
}
// Block-wide: use(row, q . row) for each row < count, where the exact sum is an int32_t, or an
// int64_t for wide rows.
template <class Team, class RowOf, class Use>
KINGLET_HOST_DEVICE void CodeDots(const Team& block, uint64_t count, uint64_t n,
                                  const CodeRows& rows, const int16_t* q, const RowOf& row_of,
                                  const Use& use) {
  if (rows.wide) {
    CodeDots<int64_t>(block, count, n, rows.aligned, q, row_of, use);
  } else {
    CodeDots<int32_t>(block, count, n, rows.aligned, q, row_of, use);
  }
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DOTS_H_
