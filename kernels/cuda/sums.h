// Sums and maxima by the threads of a thread block: rules 4 and 5 of docs/NUMERICS.md. C++17.
//
// A sum of at least 32 terms is split into sum tiles of 1,024 terms, and each sum tile into 16
// chains: chain j adds terms j, j + 16, ... in order. The chains are the independent work: one
// thread computes a chain. Then the 16 chains of a sum tile are folded by halves, and the sums of
// the sum tiles pairwise. kernels/ref/sum.h adds the same terms in the same order, so the bits do
// not depend on the number of threads.
#ifndef KINGLET_KERNELS_CUDA_SUMS_H_
#define KINGLET_KERNELS_CUDA_SUMS_H_

#include <cstdint>

#include "kernels/cache_weight.h"
#include "kernels/cuda/block.h"
#include "kernels/numerics.h"

namespace kinglet::cuda {

// Chains of a sum of n terms.
KINGLET_HOST_DEVICE constexpr uint64_t SumChains(uint64_t n) {
  return n < kShortSum ? 1 : SumTiles(n) * kSumChains;
}

// Chain `chain` of a sum of n terms; accumulate(partial, i) returns partial plus term i.
template <class Accumulate>
KINGLET_HOST_DEVICE float ChainSum(uint64_t n, uint64_t chain, const Accumulate& accumulate) {
  float sum = 0.0f;
  if (n < kShortSum) {
    for (uint64_t i = 0; i < n; ++i) sum = accumulate(sum, i);
    return sum;
  }
  const uint64_t begin = chain / kSumChains * kSumTile;
  const uint64_t end = Least(n, begin + kSumTile);
  for (uint64_t i = begin + chain % kSumChains; i < end; i += kSumChains) sum = accumulate(sum, i);
  return sum;
}

// The sum of a sum tile from its 16 chains, which are overwritten.
KINGLET_HOST_DEVICE inline float FoldChains(float* chains) {
  for (uint32_t distance = kSumChains / 2; distance > 0; distance /= 2) {
    for (uint32_t j = 0; j < distance; ++j) chains[j] += chains[j + distance];
  }
  return chains[0];
}

// The sum of n > 0 tile sums: neighbours first, an odd last one carried up. Overwrites `sums`.
KINGLET_HOST_DEVICE inline float FoldTiles(float* sums, uint64_t n) {
  while (n > 1) {
    for (uint64_t i = 0; i + 1 < n; i += 2) sums[i / 2] = sums[i] + sums[i + 1];
    if (n % 2 != 0) sums[n / 2] = sums[n - 1];
    n = (n + 1) / 2;
  }
  return sums[0];
}

// Block-wide: FoldTiles. The result is in sums[0].
KINGLET_HOST_DEVICE inline void BlockFoldTiles(const Block& block, float* sums, uint64_t n) {
  for (uint64_t apart = 1; apart < n; apart *= 2) {
    block.ForEach(DivideUp(n - apart, 2 * apart),
                  [&](uint64_t i) { sums[2 * apart * i] += sums[2 * apart * i + apart]; });
  }
}

// FoldTiles for up to 2^30 tile sums that come one by one (kernels/ref/sum.h).
class RunningFold {
 public:
  KINGLET_HOST_DEVICE void Push(float value) {
    // Its loops are seldom run, and then short: not unrolled, they are less code.
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
    for (uint32_t merged = count_++; (merged & 1u) != 0; merged >>= 1) {
      value = stack_[--depth_] + value;
    }
    stack_[depth_++] = value;
  }
  KINGLET_HOST_DEVICE float Total() const {
    if (depth_ == 0) return 0.0f;
    float total = stack_[depth_ - 1];
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
    for (uint32_t i = depth_ - 1; i-- > 0;) total = stack_[i] + total;
    return total;
  }

 private:
  float stack_[32];
  uint32_t depth_ = 0, count_ = 0;
};

// The complete sum by one thread.
template <class Accumulate>
KINGLET_HOST_DEVICE float ThreadSum(uint64_t n, const Accumulate& accumulate) {
  if (n < kShortSum) return ChainSum(n, 0, accumulate);
  RunningFold tiles;
  for (uint64_t first = 0; first < SumChains(n); first += kSumChains) {
    float chains[kSumChains];
    for (uint32_t j = 0; j < kSumChains; ++j) chains[j] = ChainSum(n, first + j, accumulate);
    tiles.Push(FoldChains(chains));
  }
  return tiles.Total();
}

// Likewise for n terms of one tile: less code.
template <class Accumulate>
KINGLET_HOST_DEVICE float ThreadTileSum(uint32_t n, const Accumulate& accumulate) {
  if (n < kShortSum) return ChainSum(n, 0, accumulate);
  // The chains of FoldChains two by two: c[j] and c[j + 8], then those sums 4, 2 and 1 apart.
  float folded[kSumChains / 2];
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
  for (uint32_t j = 0; j < kSumChains / 2; ++j) {
    const float first = ChainSum(n, j, accumulate);
    folded[j] = first + ChainSum(n, j + kSumChains / 2, accumulate);
  }
  for (uint32_t distance = kSumChains / 4; distance > 0; distance /= 2) {
    for (uint32_t j = 0; j < distance; ++j) folded[j] += folded[j + distance];
  }
  return folded[0];
}

// Floats of shared memory that BlockSum needs.
KINGLET_HOST_DEVICE constexpr uint64_t BlockSumFloats(uint64_t n) {
  return n == 0 ? 1 : SumChains(n);
}

// Block-wide: the sum of n terms, returned to every thread. `chains` is shared memory of
// BlockSumFloats(n) floats, which may be reused after one more barrier, when all threads have read
// the sum.
template <class Accumulate>
KINGLET_HOST_DEVICE float BlockSum(const Block& block, uint64_t n, float* chains,
                                   const Accumulate& accumulate) {
  const uint64_t count = n == 0 ? 0 : SumChains(n);
  block.ForEach(count, [&](uint64_t c) { chains[c] = ChainSum(n, c, accumulate); });
  block.ForEach(1, [&](uint64_t) {
    if (count == 0) chains[0] = 0.0f;
    if (count <= 1) return;
    const uint64_t tiles = count / kSumChains;
    for (uint64_t b = 0; b < tiles; ++b) chains[b] = FoldChains(chains + b * kSumChains);
    FoldTiles(chains, tiles);
  });
  return chains[0];
}

// By one warp: the sum of n terms, at most a tile, returned to every thread. accumulate(partial, i,
// thread, reg) returns partial plus term i; threads whose numbers differ by kSumChains may have
// sums of their own. REQUIRES: what the terms read is in memory that the warp has waited for.
template <class Accumulate>
KINGLET_HOST_DEVICE PerThread<float> WarpSum(const Warp& warp, uint32_t n,
                                             const Accumulate& accumulate) {
  PerThread<float> sum;
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    sum[reg] = ChainSum(n, thread % kSumChains, [&](float partial, uint64_t i) {
      return accumulate(partial, i, thread, reg);
    });
  });
  if (n >= kShortSum) {
    warp.Reduce(sum, kSumChains / 2, 1, [](float x, float y) { return x + y; });
  }
  return sum;
}

// The larger number; NaN only if both are.
KINGLET_HOST_DEVICE inline float LargerNumber(float x, float y) { return y > x || x != x ? y : x; }

// How many threads of a thread block work on BlockLargest and BlockUnits.
inline constexpr uint32_t kLargestParts = kBlockThreads;

// Block-wide: the sum of units(i) (kernels/cache_weight.h) for i < n, returned to every thread.
// `parts` is shared memory of kLargestParts numbers.
template <class Units>
KINGLET_HOST_DEVICE uint64_t BlockUnits(const Block& block, uint64_t n, uint64_t* parts,
                                        const Units& units) {
  const uint64_t count = kLargestParts;
  block.ForEach(count, [&](uint64_t part) {
    uint64_t sum = 0;
    for (uint64_t i = part; i < n; i += count) sum = AddUnits(sum, units(i));
    parts[part] = sum;
  });
  for (uint64_t left = count; left > 1; left = (left + 1) / 2) {
    const uint64_t apart = (left + 1) / 2;
    block.ForEach(left - apart,
                  [&](uint64_t i) { parts[i] = AddUnits(parts[i], parts[i + apart]); });
  }
  return parts[0];
}

// Block-wide: the largest of value(i) for i < n, n > 0, returned to every thread. As in
// kernels/ref/softmax.h, a NaN is the result only if it is value(0) and `from_first` is true, or if
// all values are NaN. `parts` is shared memory of kLargestParts floats.
template <class Value>
KINGLET_HOST_DEVICE float BlockLargest(const Block& block, uint64_t n, bool from_first,
                                       float* parts, const Value& value) {
  const auto larger = [from_first](float largest, float x, bool first) {
    const bool is_nan = largest != largest && !(first && from_first);
    return x > largest || is_nan ? x : largest;
  };
  const uint64_t count = Least(n, uint64_t{kLargestParts});
  block.ForEach(count, [&](uint64_t part) {
    float largest = value(part);
    for (uint64_t i = part + count; i < n; i += count)
      largest = larger(largest, value(i), part == 0);
    parts[part] = largest;
  });
  for (uint64_t left = count; left > 1; left = (left + 1) / 2) {
    const uint64_t distance = (left + 1) / 2;
    block.ForEach(left - distance,
                  [&](uint64_t i) { parts[i] = larger(parts[i], parts[i + distance], i == 0); });
  }
  return parts[0];
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_SUMS_H_
