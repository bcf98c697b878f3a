// The softmax normaliser of a lane's logits by rules 4 and 5 of docs/NUMERICS.md (kernels/op.h,
// LogSumExp). C++17.
//
// Two nodes: the largest logit of every sum tile (1,024 logits) and its sum of SoftmaxTerm, and the
// normaliser from all sum tiles. In the first a work item is a sum tile of a lane, by one thread
// block; in the second it is a lane. Shared memory: 256 partial maxima, 1,024 terms, 16 chains. The
// chains and folds are those of rule 4, and so are the bits.
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
  Place largest;   // LogitTiles (kernels/op.h)
  Place sums;
  Place normaliser;  // [LogSumExp::kCount] of floats

  // How many sum tiles there are, and how many logits sum tile `tile` has.
  KINGLET_HOST_DEVICE uint32_t TileCount() const { return static_cast<uint32_t>(SumTiles(count)); }
  KINGLET_HOST_DEVICE uint32_t TileSize(uint32_t tile) const {
    return Least(count - tile * kSumTile, uint32_t{kSumTile});
  }
};

// Shared memory that SumTile takes.
KINGLET_HOST_DEVICE constexpr uint64_t BytesOfSumTile() {
  return SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<float>(kSumTile) +
         SharedMemory::Bytes<float>(kSumChains);
}

// largest[b] = the largest logit of sum tile b, sums[b] = the sum of
// SoftmaxTerm(x - TileReference(largest[b])) over it. Fewer than 32 logits are one chain.
struct SumsOfTiles {
  Logits logits;
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * logits.TileCount();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return BytesOfSumTile(); }
};

// Block-wide: writes largest[tile] and sums[tile] of a lane. `x`: the tile's logits.
KINGLET_HOST_DEVICE inline void SumTile(const Logits& logits, const Work& work, const Lane& lane,
                                        uint32_t tile, const float* x, SharedMemory& shared) {
  const uint32_t n = logits.TileSize(tile);
  float* const parts = shared.Take<float>(kLargestParts);
  const float largest = BlockLargest(work.block, n, true, parts, [&](uint64_t i) { return x[i]; });
  const float reference = TileReference(largest);
  float* const terms = shared.Take<float>(kSumTile);
  float* const chains = shared.Take<float>(kSumChains);
  work.block.ForEach(n, [&](uint64_t i) { terms[i] = SoftmaxTerm(x[i] - reference); });
  const bool one_chain = logits.count < kShortSum;
  work.block.ForEach(kSumChains, [&](uint64_t j) {
    const uint32_t stride = one_chain ? 1 : kSumChains;
    chains[j] = 0.0f;
    for (uint64_t i = j; i < n; i += stride) chains[j] += terms[i];
  });
  work.block.ForEach(1, [&](uint64_t) {
    work.At<float>(lane, logits.largest)[tile] = largest;
    work.At<float>(lane, logits.sums)[tile] = one_chain ? chains[0] : FoldChains(chains);
  });
}

KINGLET_HOST_DEVICE inline void Run(const SumsOfTiles& p, const Work& work) {
  const LaneItem item(work, p.logits.TileCount());
  const Lane& lane = work.lanes[item.lane];
  SharedMemory shared(work.block);
  SumTile(p.logits, work, lane, item.part,
          work.At<float>(lane, p.logits.x) + uint64_t{item.part} * kSumTile, shared);
}

// Shared memory that NormaliseLogits takes.
KINGLET_HOST_DEVICE inline uint64_t BytesOfNormaliser(const Logits& logits) {
  return SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<float>(logits.TileCount());
}

// The normaliser from all sum tiles (kernels/op.h, LogSumExp). A work item is a lane.
struct LogOfSum : ByLane {
  Logits logits;
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return BytesOfNormaliser(logits); }
};

// Block-wide: the normaliser of a lane's logits.
KINGLET_HOST_DEVICE inline void NormaliseLogits(const Logits& logits, const Work& work,
                                                const Lane& lane) {
  const float* of_tiles = work.At<float>(lane, logits.largest);
  float* const stored = work.At<float>(lane, logits.sums);
  SharedMemory shared(work.block);
  float* const parts = shared.Take<float>(kLargestParts);
  float* const sums = shared.Take<float>(logits.TileCount());
  const float largest = BlockLargest(work.block, logits.TileCount(), true, parts,
                                     [&](uint64_t i) { return of_tiles[i]; });
  const float reference = SoftmaxReference(largest);
  work.block.ForEach(logits.TileCount(), [&](uint64_t i) {
    sums[i] = stored[i] = stored[i] * Exp(TileReference(of_tiles[i]) - reference);
  });
  BlockFoldTiles(work.block, sums, logits.TileCount());
  work.block.ForEach(1, [&](uint64_t) {
    float* const normaliser = work.At<float>(lane, logits.normaliser);
    normaliser[0] = reference;
    normaliser[1] = Log(sums[0]);
    normaliser[2] = largest;
  });
}

KINGLET_HOST_DEVICE inline void Run(const LogOfSum& p, const Work& work) {
  NormaliseLogits(p.logits, work, work.lanes[work.item]);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_SOFTMAX_H_
