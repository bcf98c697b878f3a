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

  static constexpr uint32_t kStreams = IntegerProduct::kMaxStreamTiles * kTileStreams;
  // A warp has a block of 1,024 logits, so that a chain of a sum stays with one thread, of so many
  // tiles of lanes: half of a unit's, or one where that left much of a device without a unit.
  static constexpr uint32_t kMaxTilesOfWarp = 4, kLeastTilesOfWarp = 1;
  static constexpr uint32_t kEnoughUnits = 128;
  KINGLET_HOST_DEVICE uint32_t TilesOfWarp(uint32_t lanes, uint32_t warps) const {
    const bool enough = UnitsOf(kMaxTilesOfWarp, lanes, warps) >= kEnoughUnits;
    return enough ? kMaxTilesOfWarp : kLeastTilesOfWarp;
  }
  // Units of a block of lanes. `warps`: a multiple of 8.
  KINGLET_HOST_DEVICE uint32_t BlockUnits(uint32_t tiles, uint32_t warps) const {
    const uint32_t together = warps * tiles / IntegerProduct::kMaxStreamTiles;
    return (logits.Blocks() + together - 1) / together;
  }
  KINGLET_HOST_DEVICE uint32_t UnitsOf(uint32_t tiles, uint32_t lanes, uint32_t warps) const {
    return (lanes + kStreams - 1) / kStreams * BlockUnits(tiles, warps);
  }
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t warps) const {
    return UnitsOf(TilesOfWarp(lanes, warps), lanes, warps);
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

// A number for each of a thread's places in a warp's tiles of 16 rows and 8 lanes; or, where it is
// the same for all rows, for the first two.
template <uint32_t kTiles>
struct TileFloats {
  float values[kTiles][4];
};
template <uint32_t kTiles>
struct StreamFloats {
  float values[kTiles][2];
};

// The lanes of a warp: no more than its tiles have.
struct LaneRange {
  uint32_t first, count;
};

// Of each lane of the warp its number value(lane), to the threads that hold the lane's sums.
template <uint32_t kTiles, class Value>
KINGLET_HOST_DEVICE void LoadOfStreams(const Warp& warp, const Work& work, const LaneRange& lanes,
                                       PerThread<StreamFloats<kTiles>>& to, const Value& value) {
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

// What makes logits of the sums of a thread's two rows of a tile.
struct RowTerms {
  float scales[2], biases[2];

  // -0 added to a number leaves it as it is.
  KINGLET_HOST_DEVICE static RowTerms Load(const IntegerProduct& p, uint32_t row_tile,
                                           uint32_t lane) {
    RowTerms terms{};
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t row = row_tile * kTileRows + TileRow(lane, 2 * i);
      if (row < p.matrix.rows) terms.scales[i] = p.matrix.scales[row];
      terms.biases[i] =
          p.finish.bias != nullptr && row < p.matrix.rows ? p.finish.bias[row] : -0.0f;
    }
    return terms;
  }
  // The same as ProductOf where sums fit 32 bits and nothing is rectified.
  KINGLET_HOST_DEVICE float LogitOf(const IntegerProduct& p, const PlaneSums& sums, uint32_t i,
                                    float x_step) const {
    const float product = static_cast<float>(SumModulo(sums, i)) * (scales[i / 2] * x_step);
    return product * p.finish.scale + biases[i / 2];
  }
};

// begin(warp, its lanes); use(warp, stream tile, reg, i, logit) for every logit of a block, those
// of one sum in the order of their index; end(warp, block of logits, its lanes).
template <uint32_t kTiles, class Begin, class Use, class End>
KINGLET_HOST_DEVICE void ForEachLogit(const ClusterProduct& p, const Work& work, const Begin& begin,
                                      const Use& use, const End& end) {
  constexpr uint32_t kParts = IntegerProduct::kMaxStreamTiles / kTiles;
  const uint32_t units = p.BlockUnits(kTiles, work.block.warps());
  const uint32_t first_lane = work.unit / units * ClusterProduct::kStreams;
  const uint32_t left = work.lane_count - first_lane;
  const uint32_t lanes = left < ClusterProduct::kStreams ? left : ClusterProduct::kStreams;
  const uint32_t padded = p.PaddedColumns();
  const ByteMatrix& matrix = p.product.matrix;
  SharedMemory shared(work.block);
  const StreamBytes x(shared, ClusterProduct::kStreams, IntegerProduct::Stride(padded));
  StageStreams(work, p.product.x, p.product.x_is_byte, first_lane, lanes, 0, matrix.cols, padded,
               x);
  work.block.EachWarp([&](const Warp& warp) {
    const uint32_t logit_block =
        work.unit % units * (work.block.warps() / kParts) + warp.index() / kParts;
    const uint32_t first_stream = warp.index() % kParts * kTiles * kTileStreams;
    if (logit_block >= p.logits.Blocks() || first_stream >= lanes) return;
    const uint32_t rest = lanes - first_stream;
    const LaneRange own = {first_lane + first_stream,
                             rest < kTiles * kTileStreams ? rest : kTiles * kTileStreams};
    begin(warp, own);
    PerThread<StreamFloats<kTiles>> steps;
    LoadOfStreams(warp, work, own, steps,
                  [&](const Lane& lane) { return work.StepOf(lane, p.product.x); });
    const bool plain = p.product.fits_int32 && !p.product.finish.relu;
    const uint32_t plain_rows =
        !plain ? 0 : (matrix.rows < p.logits.count ? matrix.rows : p.logits.count);
    for (uint32_t tile = 0; tile * kTileRows < p.logits.BlockSize(logit_block); ++tile) {
      const uint32_t row_tile = logit_block * (kSumBlock / kTileRows) + tile;
      PerThread<RowTerms> rows;
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        rows[reg] = RowTerms::Load(p.product, row_tile, thread);
      });
      TileSums<kTiles> sums{};
      if (row_tile < matrix.row_tiles()) {
        WithPlanes(matrix.form == ByteForm::kByte, p.product.x_is_byte,
                   [&](auto bytes, auto bytes_x) {
                     constexpr bool kBytes = decltype(bytes)::value;
                     AddProductsOfMany<kTiles, kBytes, decltype(bytes_x)::value>(
                         warp, matrix, row_tile, 0, padded, x, first_stream, sums);
                   });
      }
      const bool whole = (row_tile + 1) * kTileRows <= plain_rows;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t s = 0; s < kTiles; ++s) {
        if (whole && (s + 1) * kTileStreams <= own.count) {
          // Nearly always: nothing is asked about a single logit.
          warp.EachThread([&](uint32_t, uint32_t reg) {
            for (uint32_t i = 0; i < 4; ++i) {
              use(warp, s, reg, i,
                  rows[reg].LogitOf(p.product, sums.tiles[s][reg], i,
                                     steps[reg].values[s][i % 2]));
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
                row < matrix.rows ? ProductOf(p.product, sums.tiles[s][reg], i, row,
                                              steps[reg].values[s][i % 2])
                                  : work.At<float>(work.lanes[own.first + stream], p.logits.x)[row];
            use(warp, s, reg, i, logit);
          }
        });
      }
    }
    end(warp, logit_block, own);
  });
}

// The 16 numbers that the threads hold for a lane become one, which lands with the threads of
// TileRow 0. together(a, b): a of the row before.
template <uint32_t kTiles, class Together>
KINGLET_HOST_DEVICE void FoldRows(const Warp& warp, PerThread<TileFloats<kTiles>>& of_warp,
                                  const Together& together) {
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
        const TileFloats<kTiles>& own = of_warp[reg];
        rows[reg] = together(own.values[s][i], own.values[s][i + 2]);  // 8 rows apart
      });
      for (uint32_t apart = 4; apart > 0; apart /= 2) {
        const PerThread<float> other = warp.Exchanged(rows, 4 * apart);
        warp.EachThread(
            [&](uint32_t, uint32_t reg) { rows[reg] = together(rows[reg], other[reg]); });
      }
      warp.EachThread([&](uint32_t, uint32_t reg) { of_warp[reg].values[s][i] = rows[reg]; });
    }
  }
}

// write(lane of the work, number) for what FoldRows left.
template <uint32_t kTiles, class Write>
KINGLET_HOST_DEVICE void WriteRows(const Warp& warp, PerThread<TileFloats<kTiles>>& of_warp,
                                   const Work& work, const LaneRange& lanes, const Write& write) {
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    if (TileRow(thread, 0) != 0) return;
    for (uint32_t s = 0; s < kTiles; ++s) {
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t stream = s * kTileStreams + TileStream(thread, i);
        if (stream < lanes.count) {
          write(work.lanes[lanes.first + stream], of_warp[reg].values[s][i]);
        }
      }
    }
  });
}

template <uint32_t kTiles>
KINGLET_HOST_DEVICE void Fill(const Warp& warp, PerThread<TileFloats<kTiles>>& of_warp, float value) {
  warp.EachThread([&](uint32_t, uint32_t reg) {
    for (auto& row : of_warp[reg].values) {
      for (float& x : row) x = value;
    }
  });
}

// Calls f with TilesOfWarp, a constant.
template <class F>
KINGLET_HOST_DEVICE void WithTiles(const ClusterProduct& p, const Work& work, const F& f) {
  constexpr uint32_t kMost = ClusterProduct::kMaxTilesOfWarp;
  if (p.TilesOfWarp(work.lane_count, work.block.warps()) == kMost) {
    f(std::integral_constant<uint32_t, kMost>());
  } else {
    f(std::integral_constant<uint32_t, ClusterProduct::kLeastTilesOfWarp>());
  }
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

namespace internal {
template <uint32_t kTiles>
KINGLET_HOST_DEVICE void RunPass(const LargestOfProducts& p, const Work& work) {
  const ClusterProduct& cluster = p.cluster;
  const auto larger = [](float a, float b) { return b > a ? b : a; };
  PerWarp<PerThread<TileFloats<kTiles>>> largest;
  ForEachLogit<kTiles>(
      cluster, work,
      [&](const Warp& warp, const LaneRange&) {
        Fill(warp, largest[warp], -kinglet::internal::FloatFromBits(0x7f800000u));
      },
      [&](const Warp& warp, uint32_t s, uint32_t reg, uint32_t i, float logit) {
        float& own = largest[warp][reg].values[s][i];
        own = larger(own, logit);
      },
      [&](const Warp& warp, uint32_t logit_block, const LaneRange& lanes) {
        FoldRows(warp, largest[warp], larger);
        WriteRows(warp, largest[warp], work, lanes, [&](const Lane& lane, float value) {
          work.At<float>(lane, cluster.logits.largest)[logit_block] = value;
        });
      });
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const LargestOfProducts& p, const Work& work) {
  internal::WithTiles(p.cluster, work,
                      [&](auto tiles) { internal::RunPass<decltype(tiles)::value>(p, work); });
}

// normaliser[0] = the largest of all blocks.
struct LargestOfLane : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
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

namespace internal {
template <uint32_t kTiles>
KINGLET_HOST_DEVICE void RunPass(const ExponentialsOfProducts& p, const Work& work) {
  const ClusterProduct& cluster = p.cluster;
  PerWarp<PerThread<TileFloats<kTiles>>> chains;
  PerWarp<PerThread<StreamFloats<kTiles>>> largest;
  ForEachLogit<kTiles>(
      cluster, work,
      [&](const Warp& warp, const LaneRange& lanes) {
        Fill(warp, chains[warp], 0.0f);
        LoadOfStreams(warp, work, lanes, largest[warp], [&](const Lane& lane) {
          return work.At<float>(lane, cluster.logits.normaliser)[0];
        });
      },
      [&](const Warp& warp, uint32_t s, uint32_t reg, uint32_t i, float logit) {
        chains[warp][reg].values[s][i] +=
            ExpOfAtMostZero(logit - largest[warp][reg].values[s][i % 2]);
      },
      [&](const Warp& warp, uint32_t logit_block, const LaneRange& lanes) {
        FoldRows(warp, chains[warp], [](float a, float b) { return a + b; });
        WriteRows(warp, chains[warp], work, lanes, [&](const Lane& lane, float value) {
          work.At<float>(lane, cluster.logits.blocks)[logit_block] = value;
        });
      });
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const ExponentialsOfProducts& p, const Work& work) {
  internal::WithTiles(p.cluster, work,
                      [&](auto tiles) { internal::RunPass<decltype(tiles)::value>(p, work); });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_
