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
  uint32_t enough_units;  // Device::EnoughUnits

  static constexpr uint32_t kStreamTiles = 8;  // of a unit
  static constexpr uint32_t kStreams = kStreamTiles * kTileStreams;
  // Stream tiles of a warp: half of the unit's, or one if the device would have too few units.
  static constexpr uint32_t kMaxTilesOfWarp = 4, kLeastTilesOfWarp = 1;
  KINGLET_HOST_DEVICE uint32_t TilesOfWarp(uint32_t lanes, uint32_t warps) const {
    const bool enough = UnitsOf(kMaxTilesOfWarp, lanes, warps) >= enough_units;
    return enough ? kMaxTilesOfWarp : kLeastTilesOfWarp;
  }
  // Units of 64 lanes, with so many stream tiles for a warp. `warps`: a multiple of 8.
  KINGLET_HOST_DEVICE uint32_t BlockUnits(uint32_t tiles, uint32_t warps) const {
    const uint32_t together = warps * tiles / kStreamTiles;
    return DivideUp(logits.Blocks(), together);
  }
  KINGLET_HOST_DEVICE uint32_t UnitsOf(uint32_t tiles, uint32_t lanes, uint32_t warps) const {
    return DivideUp(lanes, uint32_t{kStreams}) * BlockUnits(tiles, warps);
  }
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t warps) const {
    return UnitsOf(TilesOfWarp(lanes, warps), lanes, warps);
  }
  KINGLET_HOST_DEVICE uint32_t PaddedColumns() const {
    return product.matrix.col_tiles() * kTileDepth;
  }
  // Rows of each sum block of a narrow matrix that are in shared memory at a time, and most sum
  // blocks of a unit.
  static constexpr uint32_t kNarrowRows = 128, kMostSumBlocks = 4;
  // Whether there is a second pass, and two planes of all columns of x.
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<uint32_t>(1) + BytesOfVectors();
  }
  KINGLET_HOST_DEVICE uint64_t BytesOfVectors() const {
    if (product.matrix.narrow()) {
      constexpr uint64_t kRows = uint64_t{kMostSumBlocks} * kNarrowRows;
      return SharedMemory::Bytes<float>(kRows * kNarrowColumns) +
             SharedMemory::Bytes<float>(kRows * 2);
    }
    return 2 * SharedMemory::Bytes<uint8_t>(kStreams * IntegerProduct::Stride(PaddedColumns()));
  }
};

namespace internal {

// What a pass over a cluster's logits leaves of every sum block: its largest logit and the sum of
// SoftmaxTerm(x - reference). The first pass takes the reference 0, and sets `*again` where a
// block's is another (BlockReference); a second one then takes the blocks' own. NaNs are no largest
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
  KINGLET_HOST_DEVICE float Reference(const Work& work, const Lane& lane, uint32_t block) const {
    return own_references ? BlockReference(work.At<float>(lane, logits.largest)[block]) : 0.0f;
  }
  KINGLET_HOST_DEVICE void Write(const Work& work, const Lane& lane, uint32_t block, float sum,
                                 float largest) const {
    work.At<float>(lane, logits.sums)[block] = sum;
    work.At<float>(lane, logits.largest)[block] = largest;
    if (BlockReference(largest) != 0.0f) *again = 1;
  }
};

}  // namespace internal

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_PRODUCT_H_
