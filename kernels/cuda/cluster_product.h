// The logits of a vocabulary cluster as a product that passes over them compute
// (cluster_products.h), and how its work is divided. C++17.
#ifndef KINGLET_KERNELS_CUDA_CLUSTER_PRODUCT_H_
#define KINGLET_KERNELS_CUDA_CLUSTER_PRODUCT_H_

#include <cstdint>

#include "kernels/cuda/product.h"
#include "kernels/cuda/softmax.h"

namespace kinglet::cuda {

// Arguments of a pass: the first logits are rows of `product`, the others are stored at
// logits.x.
struct ClusterProduct {
  IntegerProduct product;
  Logits logits;

  static constexpr uint32_t kStreamTiles = 8;  // of a work item
  static constexpr uint32_t kStreams = kStreamTiles * kTileStreams;
  // Stream tiles of a warp. With more of them weights are decoded less often, with fewer a device
  // has more work items.
  static constexpr uint32_t kTilesOfWarp = 2;
  static constexpr uint32_t kWarpsOfTile = kStreamTiles / kTilesOfWarp;  // that share a sum tile
  // Sum tiles of a work item.
  KINGLET_HOST_DEVICE static constexpr uint32_t SumTilesOfItem(uint32_t warps) {
    return warps / kWarpsOfTile;
  }
  // The work items for 64 lanes. `warps` is a multiple of kWarpsOfTile.
  KINGLET_HOST_DEVICE uint32_t ItemsOfLaneGroup(uint32_t warps) const {
    return DivideUp(logits.TileCount(), SumTilesOfItem(warps));
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t warps) const {
    return DivideUp(lanes, uint32_t{kStreams}) * ItemsOfLaneGroup(warps);
  }
  KINGLET_HOST_DEVICE uint32_t PaddedColumns() const {
    return product.matrix.col_tiles() * kTileDepth;
  }
  // Rows of each sum tile of a narrow matrix that are in shared memory at a time.
  static constexpr uint32_t kNarrowRows = 128;
  // Whether there is a second pass, and two planes of all columns of x.
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<uint32_t>(1) + BytesOfVectors();
  }
  KINGLET_HOST_DEVICE uint64_t BytesOfVectors() const {
    if (product.matrix.narrow()) {
      constexpr uint64_t kRows = SumTilesOfItem(kBlockWarps) * kNarrowRows;
      return SharedMemory::Bytes<float>(kRows * kNarrowColumns) +
             SharedMemory::Bytes<float>(kRows * 2);
    }
    return 2 * SharedMemory::Bytes<uint8_t>(kStreams * IntegerProduct::Stride(PaddedColumns()));
  }
};

namespace internal {

// What a pass over a cluster's logits leaves of every sum tile: its largest logit and the sum of
// SoftmaxTerm(x - reference). The first pass takes the reference 0, and sets `*again` where a
// tile's is another (TileReference); a second one then takes the tiles' own. NaNs are no largest
// logit; the sum is one then.
struct LogitSums {
  Logits logits;
  bool own_references;
  uint32_t* again;  // in shared memory

  KINGLET_HOST_DEVICE static float Least() {
    return -kinglet::internal::FloatFromBits(0x7f800000u);
  }
  KINGLET_HOST_DEVICE static float Larger(float a, float b) { return b > a ? b : a; }
  KINGLET_HOST_DEVICE static float Sum(float a, float b) { return a + b; }
  KINGLET_HOST_DEVICE float Reference(const Work& work, const Lane& lane, uint32_t tile) const {
    return own_references ? TileReference(work.At<float>(lane, logits.largest)[tile]) : 0.0f;
  }
  KINGLET_HOST_DEVICE void Write(const Work& work, const Lane& lane, uint32_t tile, float sum,
                                 float largest) const {
    work.At<float>(lane, logits.sums)[tile] = sum;
    work.At<float>(lane, logits.largest)[tile] = largest;
    if (TileReference(largest) != 0.0f) *again = 1;
  }
};

// Block-wide: `pass` over the work item's logits, and a second one where a tile needs its own
// reference. pass(shared, sums) computes what `sums` keeps.
template <class Pass>
KINGLET_HOST_DEVICE void RunPasses(const ClusterProduct& p, const Work& work, const Pass& pass) {
  SharedMemory shared(work.block);
  auto* const again = shared.Take<uint32_t>(1);
  work.block.ForEach(1, [&](uint64_t) { *again = 0; });
  for (bool own_references = false;; own_references = true) {
    pass(shared, LogitSums{p.logits, own_references, again});
    if (own_references || *again == 0) return;
  }
}

}  // namespace internal

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_PRODUCT_H_
