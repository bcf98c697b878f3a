// The normaliser of a vocabulary cluster's logits for many lanes, without storing the logits.
// C++17.
//
// The logits are a product of the output table with the hidden states. For many lanes, computing
// them costs less than writing them to memory and reading them back. One pass finds the largest
// logit of every sum tile (1,024 logits) and the sum of SoftmaxTerm over it. Only where a tile's
// reference is not 0, a second pass sums with the tiles' own. A pass visits the logits of a sum in
// order, and the results are those of SumsOfTiles (softmax.h) over stored logits, bit for bit.
//
// A warp has a sum tile for 2 stream tiles (16 lanes). In a tile of 16 rows, row j belongs
// to chain j of rule 4, so a thread adds its chains in registers; at the end a butterfly of
// shuffles folds the 16 chains. Shared memory: all columns of x of 64 lanes.
//
// narrow_cluster.h does this work for narrow matrices.
#ifndef KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_
#define KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_

#include <cstdint>

#include "kernels/cuda/cluster_product.h"

namespace kinglet::cuda {

namespace internal {

// TileFloats: a value for each sum of a thread, in kTiles tiles of 16 rows and 8 lanes.
// StreamFloats: a value for each lane of a thread's sums, whatever the row.
inline constexpr uint32_t kTiles = ClusterProduct::kTilesOfWarp;
struct TileFloats {
  float values[kTiles][4];
};
struct StreamFloats {
  float values[kTiles][2];
};

// The lanes that a warp works for.
struct LaneRange {
  uint32_t first, count;
};

// By one warp: value(lane) of each of its lanes, for the threads that have the lane's sums.
template <class Value>
KINGLET_HOST_DEVICE void LoadOfStreams(const Warp& warp, const Work& work, const LaneRange& lanes,
                                       PerThread<StreamFloats>& to, const Value& value) {
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    for (uint32_t s = 0; s < kTiles; ++s) {
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t stream = s * kTileStreams + TileStream(thread, i);
        to[reg].values[s][i] =
            stream < lanes.count ? value(work.lanes[lanes.first + stream]) : 0.0f;
      }
    }
  });
}

// Scales and biases of a thread's two rows of a tile.
struct RowTerms {
  float scales[2], biases[2];

  // A bias of -0 changes nothing.
  KINGLET_HOST_DEVICE static RowTerms Load(const IntegerProduct& p, uint32_t row_tile,
                                           uint32_t thread) {
    RowTerms terms{};
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t row = row_tile * kTileRows + TileRow(thread, 2 * i);
      if (row < p.matrix.rows) terms.scales[i] = p.matrix.scales[row];
      terms.biases[i] =
          p.finish.bias != nullptr && row < p.matrix.rows ? p.finish.bias[row] : -0.0f;
    }
    return terms;
  }
  // The logit of sum i: ProductOf for sums that fit 32 bits, without ReLU.
  KINGLET_HOST_DEVICE float LogitOf(const IntegerProduct& p, const PlaneSums& sums, uint32_t i,
                                    float x_scale) const {
    const float product = static_cast<float>(SumModulo(sums, i)) * (scales[i / 2] * x_scale);
    return product * p.finish.scale + biases[i / 2];
  }
};

// Block-wide: computes the logits of a work item. On every warp that has work it calls begin(warp,
// sum tile, its lanes); then use(warp, stream tile, reg, i, logit) for sum i of a thread
// (PerThread element `reg`), for each logit of the sum tile, those of one chain in order; then
// end(warp, sum tile, its lanes).
template <class Begin, class Use, class End>
KINGLET_HOST_DEVICE void ForEachLogit(const ClusterProduct& p, const Work& work,
                                      SharedMemory shared, const Begin& begin, const Use& use,
                                      const End& end) {
  constexpr uint32_t kParts = ClusterProduct::kWarpsOfTile;
  const uint32_t items = p.ItemsOfLaneGroup(work.block.warps());
  const uint32_t first_lane = work.item / items * ClusterProduct::kStreams;
  const uint32_t lanes = Least(work.lane_count - first_lane, uint32_t{ClusterProduct::kStreams});
  const uint32_t padded = p.PaddedColumns();
  const ByteMatrix& matrix = p.product.matrix;
  const StreamBytes x(shared, ClusterProduct::kStreams, IntegerProduct::Stride(padded));
  StageStreams(work, p.product.x, p.product.x_is_byte, first_lane, lanes, 0, matrix.cols, padded,
               x);
  work.block.EachWarp([&](const Warp& warp) {
    const uint32_t sum_tile =
        work.item % items * p.SumTilesOfItem(work.block.warps()) + warp.index() / kParts;
    const uint32_t first_stream = warp.index() % kParts * kTiles * kTileStreams;
    if (sum_tile >= p.logits.TileCount() || first_stream >= lanes) return;
    const LaneRange own = {first_lane + first_stream,
                           Least(lanes - first_stream, kTiles * kTileStreams)};
    begin(warp, sum_tile, own);
    PerThread<StreamFloats> scales;
    LoadOfStreams(warp, work, own, scales,
                  [&](const Lane& lane) { return work.ScaleOf(lane, p.product.x); });
    const bool plain = p.product.fits_int32 && !p.product.finish.relu;
    const uint32_t plain_rows = plain ? Least(matrix.rows, p.logits.count) : 0;
    for (uint32_t tile = 0; tile * kTileRows < p.logits.TileSize(sum_tile); ++tile) {
      const uint32_t row_tile = sum_tile * (kSumTile / kTileRows) + tile;
      PerThread<RowTerms> rows;
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        rows[reg] = RowTerms::Load(p.product, row_tile, thread);
      });
      TileSums<kTiles> sums{};
      if (row_tile < matrix.row_tiles()) {
        WithPlanes(matrix.form == ByteForm::kByte, p.product.x_is_byte,
                   [&](auto bytes, auto bytes_x) {
                     constexpr bool kBytes = decltype(bytes)::value;
                     AddProductsOfCluster<kTiles, kBytes, decltype(bytes_x)::value>(
                         warp, matrix, row_tile, 0, padded, x, first_stream, sums);
                   });
      }
      const bool whole = (row_tile + 1) * kTileRows <= plain_rows;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t s = 0; s < kTiles; ++s) {
        if (whole && (s + 1) * kTileStreams <= own.count) {
          // Nearly all tiles: no test for single logits.
          warp.EachThread([&](uint32_t, uint32_t reg) {
            for (uint32_t i = 0; i < 4; ++i) {
              use(warp, s, reg, i,
                  rows[reg].LogitOf(p.product, sums.tiles[s][reg], i,
                                    scales[reg].values[s][i % 2]));
            }
          });
          continue;
        }
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t row = row_tile * kTileRows + TileRow(thread, i);
            const uint32_t stream = s * kTileStreams + TileStream(thread, i);
            if (row >= p.logits.count || stream >= own.count) continue;
            const float logit =
                row < matrix.rows
                    ? ProductOf(p.product, sums.tiles[s][reg], i, row, scales[reg].values[s][i % 2])
                    : work.At<float>(work.lanes[own.first + stream], p.logits.x)[row];
            use(warp, s, reg, i, logit);
          }
        });
      }
    }
    end(warp, sum_tile, own);
  });
}

// By one warp: combines the 16 values (rows) of each lane into one, which the threads whose TileRow
// is 0 then have. combine(a, b): a is of the row before b, so the fold is 8, 4, 2, 1 apart as in
// rule 4.
template <class Combine>
KINGLET_HOST_DEVICE void FoldRows(const Warp& warp, PerThread<TileFloats>& of_warp,
                                  const Combine& combine) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
  for (uint32_t s = 0; s < kTiles; ++s) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t i = 0; i < 2; ++i) {
      PerThread<float> rows;
      warp.EachThread([&](uint32_t, uint32_t reg) {
        const TileFloats& own = of_warp[reg];
        rows[reg] = combine(own.values[s][i], own.values[s][i + 2]);  // 8 rows apart
      });
      warp.Reduce(rows, 16, 4, combine);  // threads 4 apart have neighbouring rows
      warp.EachThread([&](uint32_t, uint32_t reg) { of_warp[reg].values[s][i] = rows[reg]; });
    }
  }
}

KINGLET_HOST_DEVICE inline void Fill(const Warp& warp, PerThread<TileFloats>& of_warp,
                                     float value) {
  warp.EachThread([&](uint32_t, uint32_t reg) {
    for (auto& row : of_warp[reg].values) {
      for (float& x : row) x = value;
    }
  });
}

// Block-wide: what `sums` keeps of the work item's sum tiles.
KINGLET_HOST_DEVICE inline void SumLogits(const ClusterProduct& p, const Work& work,
                                          SharedMemory shared, const LogitSums& sums) {
  PerWarp<PerThread<TileFloats>> chains, largest;
  PerWarp<PerThread<StreamFloats>> references;
  ForEachLogit(
      p, work, shared,
      [&](const Warp& warp, uint32_t tile, const LaneRange& lanes) {
        Fill(warp, chains[warp], 0.0f);
        Fill(warp, largest[warp], LogitSums::Least());
        LoadOfStreams(warp, work, lanes, references[warp],
                      [&](const Lane& lane) { return sums.Reference(work, lane, tile); });
      },
      [&](const Warp& warp, uint32_t s, uint32_t reg, uint32_t i, float logit) {
        chains[warp][reg].values[s][i] +=
            SoftmaxTerm(logit - references[warp][reg].values[s][i % 2]);
        float& own = largest[warp][reg].values[s][i];
        own = LogitSums::Larger(own, logit);
      },
      [&](const Warp& warp, uint32_t tile, const LaneRange& lanes) {
        FoldRows(warp, chains[warp], LogitSums::Sum);
        FoldRows(warp, largest[warp], LogitSums::Larger);
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          if (TileRow(thread, 0) != 0) return;
          for (uint32_t s = 0; s < kTiles; ++s) {
            for (uint32_t i = 0; i < 2; ++i) {
              const uint32_t stream = s * kTileStreams + TileStream(thread, i);
              if (stream >= lanes.count) continue;
              sums.Write(work, work.lanes[lanes.first + stream], tile,
                         chains[warp][reg].values[s][i], largest[warp][reg].values[s][i]);
            }
          }
        });
      });
}

}  // namespace internal

// logits.largest[b] and logits.sums[b] of every sum tile. A work item is some sum tiles for 64
// lanes. REQUIRES: at least 32 logits, and a matrix of tiles.
struct SumsOfProducts {
  ClusterProduct cluster;
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t warps) const {
    return cluster.WorkItems(lanes, warps);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return cluster.SharedBytes(); }
};

KINGLET_HOST_DEVICE inline void Run(const SumsOfProducts& p, const Work& work) {
  internal::RunPasses(p.cluster, work,
                      [&](const SharedMemory& shared, const internal::LogitSums& sums) {
                        internal::SumLogits(p.cluster, work, shared, sums);
                      });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_
