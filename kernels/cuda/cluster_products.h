// A cluster's product with its output table and the normaliser of the logits in one, for many
// lanes: the logits are made twice and stored nowhere, since a product of so many lanes costs less
// than writing its result to memory and reading it back. The sums and their order are those of
// LargestOfBlocks and ExponentialsOfBlocks over stored logits. C++17.
#ifndef KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_
#define KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_

#include <cstdint>

#include "kernels/cuda/product.h"
#include "kernels/cuda/softmax.h"

namespace kinglet::cuda {

// Logits whose first rows are a product; the others are stored where logits.x says.
struct ClusterProduct {
  IntegerProduct product;
  Logits logits;

  // One block of 1,024 logits for each warp, so that a chain of a sum stays with one thread.
  KINGLET_HOST_DEVICE uint32_t BlockUnits(uint32_t warps) const {
    return (logits.Blocks() + warps - 1) / warps;
  }
  static constexpr uint32_t kStreams = IntegerProduct::kMostStreamTiles * kTileStreams;
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t warps) const {
    return (lanes + kStreams - 1) / kStreams * BlockUnits(warps);
  }
  KINGLET_HOST_DEVICE uint32_t PaddedColumns() const {
    return product.matrix.col_tiles() * kTileDepth;
  }
  // All columns of x at once.
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return 2 * SharedMemory::Bytes<uint8_t>(kStreams * IntegerProduct::Stride(PaddedColumns()));
  }
};

namespace internal {

// A number for each of a thread's places in the tiles of 16 rows and 64 lanes; or, where it is the
// same for all rows, for the first two.
struct TileFloats {
  float values[IntegerProduct::kMostStreamTiles][4];
};
struct StreamFloats {
  float values[IntegerProduct::kMostStreamTiles][2];
};

// Of each lane of the unit its number value(lane), to the threads that hold the lane's sums.
template <class Value>
KINGLET_HOST_DEVICE void LoadOfStreams(const Warp& warp, const Work& work, uint32_t first_lane,
                                       uint32_t lanes, PerLane<StreamFloats>& to,
                                       const Value& value) {
  warp.EachLane([&](uint32_t lane, uint32_t slot) {
    for (uint32_t s = 0; s < IntegerProduct::kMostStreamTiles; ++s) {
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t stream = s * kTileStreams + TileStream(lane, i);
        to[slot].values[s][i] = stream < lanes ? value(work.lanes[first_lane + stream]) : 0.0f;
      }
    }
  });
}

// begin(warp, first lane, lanes); use(warp, stream tile, slot, i, logit) for every logit of a
// block, those of one sum in the order of their index; end(warp, block of logits, first lane,
// lanes).
// Both factors are taken as two planes whatever their integers are: one case for the compiler.
template <class Begin, class Use, class End>
KINGLET_HOST_DEVICE void ForEachLogit(const ClusterProduct& p, const Work& work, const Begin& begin,
                                      const Use& use, const End& end) {
  constexpr uint32_t kTiles = IntegerProduct::kMostStreamTiles;
  constexpr bool kBytes = false, kBytesX = false;
  const uint32_t units = p.BlockUnits(work.block.warps());
  const uint32_t first_lane = work.unit / units * ClusterProduct::kStreams;
  const uint32_t left = work.lane_count - first_lane;
  const uint32_t lanes = left < ClusterProduct::kStreams ? left : ClusterProduct::kStreams;
  const uint32_t padded = p.PaddedColumns();
  SharedMemory shared(work.block);
  StreamBytes x{};
  x.stride = IntegerProduct::Stride(padded);
  x.low = shared.Take<uint8_t>(ClusterProduct::kStreams * x.stride);
  x.high = shared.Take<uint8_t>(ClusterProduct::kStreams * x.stride);
  StageStreams<kBytesX>(work, p.product.x, first_lane, lanes, ClusterProduct::kStreams, 0,
                        p.product.matrix.cols, padded, x);
  work.block.EachWarp([&](const Warp& warp) {
    const uint32_t logit_block = work.unit % units * work.block.warps() + warp.index();
    if (logit_block >= p.logits.Blocks()) return;
    begin(warp, first_lane, lanes);
    PerLane<StreamFloats> steps;
    LoadOfStreams(warp, work, first_lane, lanes, steps,
                  [&](const Lane& lane) { return work.StepOf(lane, p.product.x); });
    for (uint32_t tile = 0; tile * kTileRows < p.logits.BlockSize(logit_block); ++tile) {
      const uint32_t row_tile = logit_block * (kSumBlock / kTileRows) + tile;
      TileSums<kTiles> sums{};
      if (row_tile < p.product.matrix.row_tiles()) {
        AddTileProducts<kTiles, kBytes, kBytesX>(warp, p.product.matrix, row_tile, 0, padded, x,
                                                 sums);
      }
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t s = 0; s < kTiles; ++s) {
        warp.EachLane([&](uint32_t lane, uint32_t slot) {
          for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t row = row_tile * kTileRows + TileRow(lane, i);
            const uint32_t stream = s * kTileStreams + TileStream(lane, i);
            if (row >= p.logits.count || stream >= lanes) continue;
            const float logit =
                row < p.product.matrix.rows
                    ? ProductOf(p.product, sums.tiles[s][slot], i, row,
                                steps[slot].values[s][i % 2])
                    : work.At<float>(work.lanes[first_lane + stream], p.logits.x)[row];
            use(warp, s, slot, i, logit);
          }
        });
      }
    }
    end(warp, logit_block, first_lane, lanes);
  });
}

// The 16 numbers that the threads hold for a lane become one, which lands with the threads of
// TileRow 0. together(a, b): a of the row before.
template <class Together>
KINGLET_HOST_DEVICE void FoldRows(const Warp& warp, PerLane<TileFloats>& of_warp,
                                  const Together& together) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
  for (uint32_t s = 0; s < IntegerProduct::kMostStreamTiles; ++s) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t i = 0; i < 2; ++i) {
      PerLane<float> rows;
      warp.EachLane([&](uint32_t, uint32_t slot) {
        const TileFloats& own = of_warp[slot];
        rows[slot] = together(own.values[s][i], own.values[s][i + 2]);  // 8 rows apart
      });
      for (uint32_t apart = 4; apart > 0; apart /= 2) {
        const PerLane<float> other = warp.Exchanged(rows, 4 * apart);
        warp.EachLane(
            [&](uint32_t, uint32_t slot) { rows[slot] = together(rows[slot], other[slot]); });
      }
      warp.EachLane([&](uint32_t, uint32_t slot) { of_warp[slot].values[s][i] = rows[slot]; });
    }
  }
}

// write(lane of the work, number) for what FoldRows left.
template <class Write>
KINGLET_HOST_DEVICE void WriteRows(const Warp& warp, PerLane<TileFloats>& of_warp, const Work& work,
                                   uint32_t first_lane, uint32_t lanes, const Write& write) {
  warp.EachLane([&](uint32_t lane, uint32_t slot) {
    if (TileRow(lane, 0) != 0) return;
    for (uint32_t s = 0; s < IntegerProduct::kMostStreamTiles; ++s) {
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t stream = s * kTileStreams + TileStream(lane, i);
        if (stream < lanes) write(work.lanes[first_lane + stream], of_warp[slot].values[s][i]);
      }
    }
  });
}

KINGLET_HOST_DEVICE inline void Fill(const Warp& warp, PerLane<TileFloats>& of_warp, float value) {
  warp.EachLane([&](uint32_t, uint32_t slot) {
    for (auto& row : of_warp[slot].values) {
      for (float& x : row) x = value;
    }
  });
}

}  // namespace internal

// A pass over a cluster's logits.
struct ClusterPass {
  ClusterProduct cluster;
  static constexpr uint32_t kAloneFromLanes = 1;
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t warps) const {
    return cluster.Units(lanes, warps);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return cluster.SharedBytes(); }
};

// logits.largest[b] = the largest of block b. Logits that are no numbers are passed over: what
// comes of them is not finite in any case.
struct LargestOfProducts : ClusterPass {};

KINGLET_HOST_DEVICE inline void Run(const LargestOfProducts& p, const Work& work) {
  const ClusterProduct& cluster = p.cluster;
  const auto larger = [](float a, float b) { return b > a ? b : a; };
  PerWarp<PerLane<internal::TileFloats>> largest;
  internal::ForEachLogit(
      cluster, work,
      [&](const Warp& warp, uint32_t, uint32_t) {
        internal::Fill(warp, largest[warp], -kinglet::internal::FloatFromBits(0x7f800000u));
      },
      [&](const Warp& warp, uint32_t s, uint32_t slot, uint32_t i, float logit) {
        float& own = largest[warp][slot].values[s][i];
        own = larger(own, logit);
      },
      [&](const Warp& warp, uint32_t logit_block, uint32_t first_lane, uint32_t lanes) {
        internal::FoldRows(warp, largest[warp], larger);
        internal::WriteRows(warp, largest[warp], work, first_lane, lanes,
                            [&](const Lane& lane, float value) {
                              work.At<float>(lane, cluster.logits.largest)[logit_block] = value;
                            });
      });
}

// normaliser[0] = the largest of all blocks.
struct LargestOfLane : ByLane {
  Logits logits;
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts);
  }
};

KINGLET_HOST_DEVICE inline void Run(const LargestOfLane& p, const Work& work) {
  const Lane& lane = work.lanes[work.unit];
  const float* of_blocks = work.At<float>(lane, p.logits.largest);
  float* const parts = SharedMemory(work.block).Take<float>(kLargestParts);
  const float largest = BlockLargest(work.block, p.logits.Blocks(), true, parts,
                                     [&](uint64_t i) { return of_blocks[i]; });
  work.block.ForEach(1, [&](uint64_t) { work.At<float>(lane, p.logits.normaliser)[0] = largest; });
}

// logits.blocks[b] = the sum of exp(x - max) over block b, by chains as rule 4 has them: row j of
// the tiles is chain j. REQUIRES: at least 32 logits.
struct ExponentialsOfProducts : ClusterPass {};

KINGLET_HOST_DEVICE inline void Run(const ExponentialsOfProducts& p, const Work& work) {
  const ClusterProduct& cluster = p.cluster;
  PerWarp<PerLane<internal::TileFloats>> chains;
  PerWarp<PerLane<internal::StreamFloats>> largest;
  internal::ForEachLogit(
      cluster, work,
      [&](const Warp& warp, uint32_t first_lane, uint32_t lanes) {
        internal::Fill(warp, chains[warp], 0.0f);
        internal::LoadOfStreams(
            warp, work, first_lane, lanes, largest[warp],
            [&](const Lane& lane) { return work.At<float>(lane, cluster.logits.normaliser)[0]; });
      },
      [&](const Warp& warp, uint32_t s, uint32_t slot, uint32_t i, float logit) {
        chains[warp][slot].values[s][i] += Exp(logit - largest[warp][slot].values[s][i % 2]);
      },
      [&](const Warp& warp, uint32_t logit_block, uint32_t first_lane, uint32_t lanes) {
        internal::FoldRows(warp, chains[warp], [](float a, float b) { return a + b; });
        internal::WriteRows(warp, chains[warp], work, first_lane, lanes,
                            [&](const Lane& lane, float value) {
                              work.At<float>(lane, cluster.logits.blocks)[logit_block] = value;
                            });
      });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_
