// The softmax normaliser of a lane's logits, max x and log sum exp(x - max), by rules 4 and 5 of
// docs/NUMERICS.md. C++17.
//
// Three steps: the largest logit of every sum block (1,024 logits), the sum of exp(x - max) over
// every sum block, and the log of the sum of those. In the first two a unit is a sum block of a
// lane, by one thread block; in the third it is a lane. Shared memory: 256 partial maxima, 1,024
// exponentials, 16 chains. The chains and folds are those of rule 4, so the bits are too.
#ifndef KINGLET_KERNELS_CUDA_SOFTMAX_H_
#define KINGLET_KERNELS_CUDA_SOFTMAX_H_

#include <cstdint>

#include "kernels/cuda/step.h"
#include "kernels/cuda/sums.h"
#include "kernels/functions.h"

namespace kinglet::cuda {

// Exp(x) of x <= 0 or NaN, bit for bit, without a branch.
KINGLET_HOST_DEVICE inline float ExpOfAtMostZero(float x) {
  const kinglet::internal::ExpFactors e = kinglet::internal::FactorsOfExp(x);
  // 2^(n + 64), and y times it, are exact for every n that is not below kUnderflow. Only the last
  // multiplication, by 2^-64, may round.
  const float scale = kinglet::internal::FloatFromBits(
      (kinglet::internal::BitsFromFloat(e.shifted) << 23) + (uint32_t{127 + 64} << 23));
  const float scaled = e.y * scale * 5.42101086e-20f;
  return x < ExpConstants::kUnderflow ? 0.0f : scaled;
}

// A lane's logits: arguments of the three steps.
struct Logits {
  Place x;           // [count] of reals
  uint32_t count;    // > 0
  Place largest;     // [SumBlocks(count)] of reals
  Place blocks;      // the same
  Place normaliser;  // [2] of reals

  // Sum blocks, and the logits of one.
  KINGLET_HOST_DEVICE uint32_t Blocks() const { return static_cast<uint32_t>(SumBlocks(count)); }
  KINGLET_HOST_DEVICE uint32_t BlockSize(uint32_t block) const {
    return Least(count - block * kSumBlock, uint32_t{kSumBlock});
  }
};

// largest[b] = the largest logit of sum block b.
struct LargestOfBlocks {
  Logits logits;
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const {
    return lanes * logits.Blocks();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts);
  }
};

KINGLET_HOST_DEVICE inline void Run(const LargestOfBlocks& p, const Work& work) {
  const LaneUnit unit(work, p.logits.Blocks());
  const Lane& lane = work.lanes[unit.lane];
  const float* x = work.At<float>(lane, p.logits.x) + uint64_t{unit.part} * kSumBlock;
  float* const parts = SharedMemory(work.block).Take<float>(kLargestParts);
  const float largest = BlockLargest(work.block, p.logits.BlockSize(unit.part), unit.part == 0,
                                     parts, [&](uint64_t i) { return x[i]; });
  work.block.ForEach(
      1, [&](uint64_t) { work.At<float>(lane, p.logits.largest)[unit.part] = largest; });
}

// blocks[b] = the sum of exp(x - max) over sum block b, and normaliser[0] = max. Fewer than 32
// logits are one chain.
struct ExponentialsOfBlocks {
  Logits logits;
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const {
    return lanes * logits.Blocks();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<float>(kSumBlock) +
           SharedMemory::Bytes<float>(kSumChains);
  }
};

KINGLET_HOST_DEVICE inline void Run(const ExponentialsOfBlocks& p, const Work& work) {
  const LaneUnit unit(work, p.logits.Blocks());
  const Lane& lane = work.lanes[unit.lane];
  const uint32_t n = p.logits.BlockSize(unit.part);
  const float* x = work.At<float>(lane, p.logits.x) + uint64_t{unit.part} * kSumBlock;
  const float* of_blocks = work.At<float>(lane, p.logits.largest);
  SharedMemory shared(work.block);
  float* const parts = shared.Take<float>(kLargestParts);
  float* const exponentials = shared.Take<float>(kSumBlock);
  float* const chains = shared.Take<float>(kSumChains);
  const float largest = BlockLargest(work.block, p.logits.Blocks(), true, parts,
                                     [&](uint64_t i) { return of_blocks[i]; });
  work.block.ForEach(n, [&](uint64_t i) { exponentials[i] = Exp(x[i] - largest); });
  const bool one_chain = p.logits.count < kShortSum;
  work.block.ForEach(kSumChains, [&](uint64_t j) {
    const uint32_t stride = one_chain ? 1 : kSumChains;
    chains[j] = 0.0f;
    for (uint64_t i = j; i < n; i += stride) chains[j] += exponentials[i];
  });
  work.block.ForEach(1, [&](uint64_t) {
    work.At<float>(lane, p.logits.blocks)[unit.part] = one_chain ? chains[0] : FoldChains(chains);
    if (unit.part == 0) work.At<float>(lane, p.logits.normaliser)[0] = largest;
  });
}

// normaliser[1] = the log of the sum of all sum blocks. A unit is a lane.
struct LogOfSum : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Logits logits;
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(logits.Blocks());
  }
};

KINGLET_HOST_DEVICE inline void Run(const LogOfSum& p, const Work& work) {
  const Lane& lane = work.lanes[work.unit];
  const float* blocks = work.At<float>(lane, p.logits.blocks);
  float* const sums = SharedMemory(work.block).Take<float>(p.logits.Blocks());
  work.block.ForEach(p.logits.Blocks(), [&](uint64_t i) { sums[i] = blocks[i]; });
  work.block.ForEach(1, [&](uint64_t) {
    work.At<float>(lane, p.logits.normaliser)[1] = Log(FoldBlocks(sums, p.logits.Blocks()));
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_SOFTMAX_H_
