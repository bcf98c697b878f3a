// Rule 4 of docs/NUMERICS.md by the threads of a block or of a warp: the same chains and folds as
// kernels/ref/sum.h.
#ifndef KINGLET_KERNELS_CUDA_SUMS_H_
#define KINGLET_KERNELS_CUDA_SUMS_H_

#include <cstdint>

#include "kernels/cuda/block.h"

namespace kinglet::cuda {

inline constexpr uint32_t kShortSum = 32;    // shorter sums are one chain
inline constexpr uint32_t kSumChains = 16;   // chains of a block
inline constexpr uint32_t kSumBlock = 1024;  // elements of a block
KINGLET_HOST_DEVICE constexpr uint64_t SumBlocks(uint64_t n) {
  return (n + kSumBlock - 1) / kSumBlock;
}
// Chains of a sum of n numbers.
KINGLET_HOST_DEVICE constexpr uint64_t SumChains(uint64_t n) {
  return n < kShortSum ? 1 : SumBlocks(n) * kSumChains;
}

// Chain `chain` of n terms: accumulate(partial, i) adds term i.
template <class Accumulate>
KINGLET_HOST_DEVICE float ChainSum(uint64_t n, uint64_t chain, const Accumulate& accumulate) {
  float sum = 0.0f;
  if (n < kShortSum) {
    for (uint64_t i = 0; i < n; ++i) sum = accumulate(sum, i);
    return sum;
  }
  const uint64_t begin = chain / kSumChains * kSumBlock;
  const uint64_t end = n < begin + kSumBlock ? n : begin + kSumBlock;
  for (uint64_t i = begin + chain % kSumChains; i < end; i += kSumChains) sum = accumulate(sum, i);
  return sum;
}

// The 16 chains of a block become its sum.
KINGLET_HOST_DEVICE inline float FoldChains(float* chains) {
  for (uint32_t apart = kSumChains / 2; apart > 0; apart /= 2) {
    for (uint32_t j = 0; j < apart; ++j) chains[j] += chains[j + apart];
  }
  return chains[0];
}

// The sums of blocks become one, neighbours first, an odd last one carried up. REQUIRES: n > 0.
// Destroys them.
KINGLET_HOST_DEVICE inline float FoldBlocks(float* sums, uint64_t n) {
  while (n > 1) {
    for (uint64_t i = 0; i + 1 < n; i += 2) sums[i / 2] = sums[i] + sums[i + 1];
    if (n % 2 != 0) sums[n / 2] = sums[n - 1];
    n = (n + 1) / 2;
  }
  return sums[0];
}

// Sums of up to 2^30 blocks, folded as they come (kernels/ref/sum.h).
class RunningFold {
 public:
  KINGLET_HOST_DEVICE void Push(float value) {
    for (uint32_t merged = count_++; (merged & 1u) != 0; merged >>= 1) {
      value = stack_[--depth_] + value;
    }
    stack_[depth_++] = value;
  }
  KINGLET_HOST_DEVICE float Total() const {
    if (depth_ == 0) return 0.0f;
    float total = stack_[depth_ - 1];
    for (uint32_t i = depth_ - 1; i-- > 0;) total = stack_[i] + total;
    return total;
  }

 private:
  float stack_[32];
  uint32_t depth_ = 0, count_ = 0;
};

// The sum of n terms by one thread.
template <class Accumulate>
KINGLET_HOST_DEVICE float ThreadSum(uint64_t n, const Accumulate& accumulate) {
  if (n < kShortSum) return ChainSum(n, 0, accumulate);
  RunningFold blocks;
  for (uint64_t first = 0; first < SumChains(n); first += kSumChains) {
    float chains[kSumChains];
    for (uint32_t j = 0; j < kSumChains; ++j) chains[j] = ChainSum(n, first + j, accumulate);
    blocks.Push(FoldChains(chains));
  }
  return blocks.Total();
}

// Floats of shared memory that BlockSum needs.
KINGLET_HOST_DEVICE constexpr uint64_t BlockSumFloats(uint64_t n) {
  return n == 0 ? 1 : SumChains(n);
}

// The sum of n terms, the same to all threads. Sections of the block; `chains` is shared memory of
// BlockSumFloats(n), free again two sections after the sum was read.
template <class Accumulate>
KINGLET_HOST_DEVICE float BlockSum(const Block& block, uint64_t n, float* chains,
                                   const Accumulate& accumulate) {
  const uint64_t count = n == 0 ? 0 : SumChains(n);
  block.ForEach(count, [&](uint64_t c) { chains[c] = ChainSum(n, c, accumulate); });
  block.ForEach(1, [&](uint64_t) {
    if (count == 0) chains[0] = 0.0f;
    if (count <= 1) return;
    const uint64_t blocks = count / kSumChains;
    for (uint64_t b = 0; b < blocks; ++b) chains[b] = FoldChains(chains + b * kSumChains);
    FoldBlocks(chains, blocks);
  });
  return chains[0];
}

// Threads that share a search for the largest of many.
inline constexpr uint32_t kLargestParts = 256;

// The largest of value(i), i < n, the same to all threads. A NaN never wins a comparison: it is the
// largest only at i = 0 and where `from_first` (kernels/ref/softmax.h), or among nothing else.
// Sections of the block; `parts` is shared memory of kLargestParts floats. REQUIRES: n > 0.
template <class Value>
KINGLET_HOST_DEVICE float BlockLargest(const Block& block, uint64_t n, bool from_first,
                                       float* parts, const Value& value) {
  const auto larger = [from_first](float largest, float x, bool first) {
    const bool is_nan = largest != largest && !(first && from_first);
    return x > largest || is_nan ? x : largest;
  };
  const uint64_t count = n < kLargestParts ? n : kLargestParts;
  block.ForEach(count, [&](uint64_t part) {
    float largest = value(part);
    for (uint64_t i = part + count; i < n; i += count)
      largest = larger(largest, value(i), part == 0);
    parts[part] = largest;
  });
  for (uint64_t left = count; left > 1; left = (left + 1) / 2) {
    const uint64_t apart = (left + 1) / 2;
    block.ForEach(left - apart,
                  [&](uint64_t i) { parts[i] = larger(parts[i], parts[i + apart], i == 0); });
  }
  return parts[0];
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_SUMS_H_
