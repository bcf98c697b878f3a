// The work of cluster_products.h for a cluster whose output table has at most four columns, such as
// the last tail of the best MicroNet (242,735 x 4): without tensor cores, whose tiles would be
// seven eighths empty. C++17.
//
// The work is divided as in cluster_products.h: a warp has a sum tile (1,024 logits) for 16
// lanes. A thread has a lane and some of the 16 chains of rule 4, and computes their logits by
// float multiply-adds, which are exact (IntegerProduct::fits_float). Shared memory: some rows as
// floats, which all lanes of the work item use.
#ifndef KINGLET_KERNELS_CUDA_NARROW_CLUSTER_H_
#define KINGLET_KERNELS_CUDA_NARROW_CLUSTER_H_

#include <cstdint>

#include "kernels/cuda/cluster_product.h"

namespace kinglet::cuda {

namespace internal {

// How the lanes of a sum tile of a narrow matrix are divided among the 32 threads of a warp. Thread
// t has lane t % kLanes, and chains t / kLanes, t / kLanes + kGroups, ...
struct NarrowPartition {
  static constexpr uint32_t kLanes = ClusterProduct::kTilesOfWarp * kTileStreams;
  static constexpr uint32_t kGroups = kWarpThreads / kLanes;
  static constexpr uint32_t kChains = kSumChains / kGroups;  // of a thread
};

// Rows of a narrow matrix in shared memory.
struct StagedRows {
  float* codes;  // [sum tiles of the work item, kNarrowRows, kNarrowColumns]
  float* terms;  // [sum tiles of the work item, kNarrowRows, 2]: scale and bias
};

// Block-wide: copies rows `begin`, begin + 1, ... of each of the work item's sum tiles.
KINGLET_HOST_DEVICE inline void StageRows(const ClusterProduct& p, const Block& block,
                                          uint32_t first_sum_tile, uint32_t sum_tiles,
                                          uint32_t begin, const StagedRows& to) {
  constexpr uint32_t kRows = ClusterProduct::kNarrowRows;
  block.ForEach(uint64_t{sum_tiles} * kRows, [&](uint64_t item) {
    const auto i = static_cast<uint32_t>(item);
    const uint32_t row = (first_sum_tile + i / kRows) * kSumTile + begin + i % kRows;
    if (row >= p.product.matrix.rows) return;
    const NarrowRow codes = NarrowRow::Load(p.product.matrix, row);
    for (uint32_t c = 0; c < kNarrowColumns; ++c) {
      to.codes[i * kNarrowColumns + c] = static_cast<float>(codes.codes[c]);
    }
    // A bias of -0 changes nothing.
    to.terms[i * 2] = p.product.matrix.scales[row];
    to.terms[i * 2 + 1] = p.product.finish.bias != nullptr ? p.product.finish.bias[row] : -0.0f;
  });
}

// Block-wide: SumLogits (cluster_products.h) of a narrow matrix. REQUIRES: fits_float, and no ReLU.
KINGLET_HOST_DEVICE inline void SumNarrowLogits(const ClusterProduct& p, const Work& work,
                                                SharedMemory shared, const LogitSums& sums) {
  using Partition = NarrowPartition;
  struct OfThread {
    NarrowVector x;
    float reference;
    float sums[Partition::kChains], largest[Partition::kChains];  // a value for each chain
  };
  constexpr uint32_t kParts = ClusterProduct::kWarpsOfTile;
  const Block& block = work.block;
  const uint32_t items = p.ItemsOfLaneGroup(block.warps());
  const uint32_t sum_tiles = p.SumTilesOfItem(block.warps());
  const uint32_t first_lane = work.item / items * ClusterProduct::kStreams;
  const uint32_t lanes = Least(work.lane_count - first_lane, uint32_t{ClusterProduct::kStreams});
  const uint32_t first_sum_tile = work.item % items * sum_tiles;
  const uint32_t staged_rows = sum_tiles * ClusterProduct::kNarrowRows;
  const StagedRows rows = {shared.Take<float>(staged_rows * kNarrowColumns),
                           shared.Take<float>(staged_rows * 2)};
  const auto sum_tile = [&](const Warp& warp) { return first_sum_tile + warp.index() / kParts; };
  const auto lane_of = [&](const Warp& warp, uint32_t thread) {
    return warp.index() % kParts * Partition::kLanes + thread % Partition::kLanes;
  };
  PerWarp<PerThread<OfThread>> of_warps;
  block.EachWarp([&](const Warp& warp) {
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      OfThread& own = of_warps[warp][reg];
      for (float& sum : own.sums) sum = 0.0f;
      for (float& largest : own.largest) largest = LogitSums::Least();
      if (lane_of(warp, thread) >= lanes) return;
      const Lane& lane = work.lanes[first_lane + lane_of(warp, thread)];
      own.x = NarrowVector::Load(p.product, work, lane);
      if (sum_tile(warp) >= p.logits.TileCount()) return;
      own.reference = sums.Reference(work, lane, sum_tile(warp));
    });
  });
  for (uint32_t begin = 0; begin < kSumTile; begin += ClusterProduct::kNarrowRows) {
    if (first_sum_tile * kSumTile + begin >= p.logits.count) break;
    StageRows(p, block, first_sum_tile, sum_tiles, begin, rows);
    block.EachWarp([&](const Warp& warp) {
      if (sum_tile(warp) >= p.logits.TileCount()) return;
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        if (lane_of(warp, thread) >= lanes) return;
        OfThread& own = of_warps[warp][reg];
        const uint32_t staged = warp.index() / kParts * ClusterProduct::kNarrowRows;
        const uint32_t first_row = sum_tile(warp) * kSumTile + begin;
        const uint32_t first = thread / Partition::kLanes;
        const auto computed = [&](uint32_t at) {
          const float* const codes = rows.codes + (staged + at) * kNarrowColumns;
          const float* const terms = rows.terms + (staged + at) * 2;
          float sum = 0.0f;
          for (uint32_t i = 0; i < kNarrowColumns; ++i) sum = fmaf(codes[i], own.x.floats[i], sum);
          return sum * (terms[0] * own.x.scale) * p.product.finish.scale + terms[1];
        };
        const auto add = [&](uint32_t c, float logit) {
          own.sums[c] += SoftmaxTerm(logit - own.reference);
          own.largest[c] = LogitSums::Larger(own.largest[c], logit);
        };
        const uint32_t plain = Least(p.product.matrix.rows, p.logits.count);
        if (first_row + ClusterProduct::kNarrowRows <= plain) {
          // Nearly all rows take this branch, without a test for single logits.
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
          for (uint32_t at = first; at < ClusterProduct::kNarrowRows; at += kSumChains) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
            for (uint32_t c = 0; c < Partition::kChains; ++c)
              add(c, computed(at + c * Partition::kGroups));
          }
          return;
        }
        const Lane& lane = work.lanes[first_lane + lane_of(warp, thread)];
        const float* const stored = work.At<float>(lane, p.logits.x);
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
        for (uint32_t at = first; at < ClusterProduct::kNarrowRows; at += kSumChains) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
          for (uint32_t c = 0; c < Partition::kChains; ++c) {
            const uint32_t i = at + c * Partition::kGroups, row = first_row + i;
            if (row >= p.logits.count) continue;
            add(c, row < p.product.matrix.rows ? computed(i) : stored[row]);
          }
        }
      });
    });
  }
  block.EachWarp([&](const Warp& warp) {
    if (sum_tile(warp) >= p.logits.TileCount()) return;
    PerThread<float> sum, largest;
    warp.EachThread([&](uint32_t, uint32_t reg) {
      OfThread& own = of_warps[warp][reg];
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t distance = Partition::kChains / 2; distance > 0; distance /= 2) {
        for (uint32_t c = 0; c < distance; ++c) {
          own.sums[c] += own.sums[c + distance];
          own.largest[c] = LogitSums::Larger(own.largest[c], own.largest[c + distance]);
        }
      }
      sum[reg] = own.sums[0];
      largest[reg] = own.largest[0];
    });
    warp.Reduce(sum, kWarpThreads / 2, uint32_t{Partition::kLanes}, LogitSums::Sum);
    warp.Reduce(largest, kWarpThreads / 2, uint32_t{Partition::kLanes}, LogitSums::Larger);
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      if (thread >= Partition::kLanes || lane_of(warp, thread) >= lanes) return;
      const Lane& lane = work.lanes[first_lane + lane_of(warp, thread)];
      sums.Write(work, lane, sum_tile(warp), sum[reg], largest[reg]);
    });
  });
}

}  // namespace internal

// SumsOfProducts (cluster_products.h) of a narrow matrix. REQUIRES: at least 32 logits, fits_float,
// and no ReLU.
struct SumsOfNarrowProducts {
  ClusterProduct cluster;
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t warps) const {
    return cluster.WorkItems(lanes, warps);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return cluster.SharedBytes(); }
};

KINGLET_HOST_DEVICE inline void Run(const SumsOfNarrowProducts& p, const Work& work) {
  internal::RunPasses(p.cluster, work,
                      [&](const SharedMemory& shared, const internal::LogitSums& sums) {
                        internal::SumNarrowLogits(p.cluster, work, shared, sums);
                      });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_NARROW_CLUSTER_H_
