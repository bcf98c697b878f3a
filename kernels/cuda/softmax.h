// The softmax normaliser of a lane's logits by rules 4 and 5 of docs/NUMERICS.md (kernels/op.h,
// LogSumExp). C++17.
//
// Two nodes: the largest logit of every sum block (1,024 logits) and its sum of SoftmaxTerm, and
// what follows the blocks. In the first a unit is a sum block of a lane, by one thread block; in
// the second it is a lane. Shared memory: 256 partial maxima, 1,024 terms, 16 chains. The chains
// and folds are those of rule 4, so the bits are too.
#ifndef KINGLET_KERNELS_CUDA_SOFTMAX_H_
#define KINGLET_KERNELS_CUDA_SOFTMAX_H_

#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/cuda/sums.h"
#include "kernels/functions.h"

namespace kinglet::cuda {

// A lane's logits: arguments of both nodes.
struct Logits {
  Place x;         // [count] of floats
  uint32_t count;  // > 0
  Place largest;   // LogitBlocks (kernels/op.h)
  Place sums;
  Place normaliser;  // [LogSumExp::kCount] of floats

  // Sum blocks, and the logits of one.
  KINGLET_HOST_DEVICE uint32_t Blocks() const { return static_cast<uint32_t>(SumBlocks(count)); }
  KINGLET_HOST_DEVICE uint32_t BlockSize(uint32_t block) const {
    return Least(count - block * kSumBlock, uint32_t{kSumBlock});
  }
};

// largest[b] = the largest logit of sum block b, sums[b] = the sum of
// SoftmaxTerm(x - BlockReference(largest[b])) over it. Fewer than 32 logits are one chain.
struct SumsOfBlocks {
  Logits logits;
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const {
    return lanes * logits.Blocks();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<float>(kSumBlock) +
           SharedMemory::Bytes<float>(kSumChains);
  }
};

KINGLET_HOST_DEVICE inline void Run(const SumsOfBlocks& p, const Work& work) {
  const LaneUnit unit(work, p.logits.Blocks());
  const Lane& lane = work.lanes[unit.lane];
  const uint32_t n = p.logits.BlockSize(unit.part);
  const float* x = work.At<float>(lane, p.logits.x) + uint64_t{unit.part} * kSumBlock;
  SharedMemory shared(work.block);
  float* const parts = shared.Take<float>(kLargestParts);
  const float largest = BlockLargest(work.block, n, true, parts, [&](uint64_t i) { return x[i]; });
  const float reference = BlockReference(largest);
  float* const terms = shared.Take<float>(kSumBlock);
  float* const chains = shared.Take<float>(kSumChains);
  work.block.ForEach(n, [&](uint64_t i) { terms[i] = SoftmaxTerm(x[i] - reference); });
  const bool one_chain = p.logits.count < kShortSum;
  work.block.ForEach(kSumChains, [&](uint64_t j) {
    const uint32_t stride = one_chain ? 1 : kSumChains;
    chains[j] = 0.0f;
    for (uint64_t i = j; i < n; i += stride) chains[j] += terms[i];
  });
  work.block.ForEach(1, [&](uint64_t) {
    work.At<float>(lane, p.logits.largest)[unit.part] = largest;
    work.At<float>(lane, p.logits.sums)[unit.part] = one_chain ? chains[0] : FoldChains(chains);
  });
}

// What follows the blocks (kernels/op.h, LogSumExp). A unit is a lane.
struct LogOfSum : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Logits logits;
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<float>(logits.Blocks());
  }
};

KINGLET_HOST_DEVICE inline void Run(const LogOfSum& p, const Work& work) {
  const Lane& lane = work.lanes[work.unit];
  const float* of_blocks = work.At<float>(lane, p.logits.largest);
  float* const stored = work.At<float>(lane, p.logits.sums);
  SharedMemory shared(work.block);
  float* const parts = shared.Take<float>(kLargestParts);
  float* const sums = shared.Take<float>(p.logits.Blocks());
  const float largest = BlockLargest(work.block, p.logits.Blocks(), true, parts,
                                     [&](uint64_t i) { return of_blocks[i]; });
  const float reference = SoftmaxReference(largest);
  work.block.ForEach(p.logits.Blocks(), [&](uint64_t i) {
    sums[i] = stored[i] = stored[i] * Exp(BlockReference(of_blocks[i]) - reference);
  });
  work.block.ForEach(1, [&](uint64_t) {
    float* const normaliser = work.At<float>(lane, p.logits.normaliser);
    normaliser[0] = reference;
    normaliser[1] = Log(FoldBlocks(sums, p.logits.Blocks()));
    normaliser[2] = largest;
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_SOFTMAX_H_
