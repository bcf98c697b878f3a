// The softmax normaliser of a lane's logits, max x and log sum exp(x - max), by rules 4 and 5 of
// docs/NUMERICS.md. C++17.
//
// Three nodes: the largest logit of every sum block (1,024 logits), the sum of SoftmaxTerm(x -
// largest) over every sum block, and the normaliser from all sum blocks. In the first two a work
// item is a sum block of a lane, by one thread block; in the third it is a lane. Shared memory: 256
// partial maxima, 1,024 terms, 16 chains. The chains and folds are those of rule 4, and so are the
// bits.
#ifndef KINGLET_KERNELS_CUDA_SOFTMAX_H_
#define KINGLET_KERNELS_CUDA_SOFTMAX_H_

#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/cuda/sums.h"
#include "kernels/functions.h"

namespace kinglet::cuda {

// A lane's logits: arguments of the three nodes.
struct Logits {
  Place x;         // [count] of floats
  uint32_t count;  // > 0
  Place largest;   // LogitBlocks (kernels/op.h)
  Place sums;
  Place normaliser;  // [2] of floats

  // How many sum blocks there are, and how many logits sum block `block` has.
  KINGLET_HOST_DEVICE uint32_t Blocks() const { return static_cast<uint32_t>(SumBlocks(count)); }
  KINGLET_HOST_DEVICE uint32_t BlockSize(uint32_t block) const {
    return Least(count - block * kSumBlock, uint32_t{kSumBlock});
  }
};

// largest[b] = the largest logit of sum block b.
struct LargestOfBlocks {
  Logits logits;
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * logits.Blocks();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts);
  }
};

KINGLET_HOST_DEVICE inline void Run(const LargestOfBlocks& p, const Work& work) {
  const LaneItem item(work, p.logits.Blocks());
  const Lane& lane = work.lanes[item.lane];
  const float* x = work.At<float>(lane, p.logits.x) + uint64_t{item.part} * kSumBlock;
  float* const parts = SharedMemory(work.block).Take<float>(kLargestParts);
  const float largest = BlockLargest(work.block, p.logits.BlockSize(item.part), true, parts,
                                     [&](uint64_t i) { return x[i]; });
  work.block.ForEach(
      1, [&](uint64_t) { work.At<float>(lane, p.logits.largest)[item.part] = largest; });
}

// sums[b] = the sum of SoftmaxTerm(x - largest[b]) over sum block b. Fewer than 32 logits are one
// chain.
struct TermsOfBlocks {
  Logits logits;
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * logits.Blocks();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kSumBlock) + SharedMemory::Bytes<float>(kSumChains);
  }
};

KINGLET_HOST_DEVICE inline void Run(const TermsOfBlocks& p, const Work& work) {
  const LaneItem item(work, p.logits.Blocks());
  const Lane& lane = work.lanes[item.lane];
  const uint32_t n = p.logits.BlockSize(item.part);
  const float* x = work.At<float>(lane, p.logits.x) + uint64_t{item.part} * kSumBlock;
  const float reference = BlockReference(work.At<float>(lane, p.logits.largest)[item.part]);
  SharedMemory shared(work.block);
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
    work.At<float>(lane, p.logits.sums)[item.part] = one_chain ? chains[0] : FoldChains(chains);
  });
}

// normaliser[0] = the largest logit of all; sums[b] *= exp(largest[b] - normaliser[0]);
// normaliser[1] = the log of the sum of all sums[b]. A work item is a lane.
struct LogOfSum : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Logits logits;
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<float>(logits.Blocks());
  }
};

KINGLET_HOST_DEVICE inline void Run(const LogOfSum& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  const float* of_blocks = work.At<float>(lane, p.logits.largest);
  float* const stored = work.At<float>(lane, p.logits.sums);
  SharedMemory shared(work.block);
  float* const parts = shared.Take<float>(kLargestParts);
  float* const sums = shared.Take<float>(p.logits.Blocks());
  const float largest = BlockLargest(work.block, p.logits.Blocks(), true, parts,
                                     [&](uint64_t i) { return of_blocks[i]; });
  work.block.ForEach(p.logits.Blocks(), [&](uint64_t i) {
    sums[i] = stored[i] = stored[i] * Exp(BlockReference(of_blocks[i]) - largest);
  });
  work.block.ForEach(1, [&](uint64_t) {
    float* const normaliser = work.At<float>(lane, p.logits.normaliser);
    normaliser[0] = largest;
    normaliser[1] = Log(FoldBlocks(sums, p.logits.Blocks()));
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_SOFTMAX_H_
