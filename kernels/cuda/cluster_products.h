// The normaliser of a vocabulary cluster's logits for many lanes, without storing the logits.
// C++17.
//
// The logits are a product of the output table with the hidden states. For many lanes, computing
// them costs less than writing them to memory and reading them back. One pass finds the largest
// logit of every sum tile (1,024 logits) and the sum of SoftmaxTerm over it. Only where a tile's
// reference is not 0, a second pass sums with the tiles' own. A pass visits the logits of a sum in
// order, and the results are those of SumsOfTiles (softmax.h) over stored logits, bit for bit.
//
// A warp has a sum tile for some stream tiles (16 or 32 lanes). In a tile of 16 rows, row j belongs
// to chain j of rule 4, so a thread adds its chains in registers; at the end shuffles fold
// the 16 chains.
//
// Tiles are products of bytes, with all columns of x of 64 lanes in shared memory; or, of a matrix
// of at most four columns such as the last tail of the best MicroNet (242,735 x 4), products in
// half precision: a code x of at most 15 bits is 128 a + b, which is exact in half precision, and
// so are the weights. The tile's 8 columns are the weights twice, times the a's and the b's.
#ifndef KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_
#define KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_

#include <cstdint>

#include "kernels/cuda/half_product.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/softmax.h"

namespace kinglet::cuda {

// logits.largest[b] and logits.sums[b] of every sum tile. The first logits are rows of `product`,
// the others are stored at logits.x. A work item is some sum tiles for 64 lanes. REQUIRES: at least
// 32 logits; for kHalves a narrow matrix with fits_halves and without ReLU, else a matrix of tiles.
template <bool kHalves>
struct SumsOfProducts {
  IntegerProduct product;
  Logits logits;

  static constexpr uint32_t kStreamTiles = 8;  // of a work item
  static constexpr uint32_t kStreams = kStreamTiles * kTileStreams;
  // Stream tiles of a warp. With more of them weights are decoded less often, with fewer a device
  // has more work items.
  static constexpr uint32_t kTilesOfWarp = kHalves ? 4 : 2;
  static constexpr uint32_t kWarpsOfTile = kStreamTiles / kTilesOfWarp;  // that share a sum tile
  // The work items for 64 lanes. `warps` is a multiple of kWarpsOfTile.
  KINGLET_HOST_DEVICE uint32_t ItemsOfLaneGroup(uint32_t warps) const {
    return DivideUp(logits.TileCount(), warps / kWarpsOfTile);
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t warps) const {
    return DivideUp(lanes, uint32_t{kStreams}) * ItemsOfLaneGroup(warps);
  }
  KINGLET_HOST_DEVICE uint32_t PaddedColumns() const {
    return product.matrix.col_tiles() * kTileDepth;
  }
  // Whether there is a second pass, and two planes of all columns of x.
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    const uint64_t planes =
        kHalves
            ? 0
            : 2 * SharedMemory::Bytes<uint8_t>(kStreams * IntegerProduct::Stride(PaddedColumns()));
    return SharedMemory::Bytes<uint32_t>(1) + planes;
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
  // One instruction; a number, if `a` is one.
  KINGLET_HOST_DEVICE static float Larger(float a, float b) { return fmaxf(a, b); }
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

// TileFloats: a value for each sum of a thread, in kTiles tiles of 16 rows and 8 lanes.
// StreamFloats: a value for each lane of a thread's sums, whatever the row.
template <uint32_t kTiles>
struct TileFloats {
  float values[kTiles][4];
};
template <uint32_t kTiles>
struct StreamFloats {
  float values[kTiles][2];
};

// The lanes that a warp works for.
struct LaneRange {
  uint32_t first, count;
};

// By one warp: value(lane) of each of its lanes, for the threads that have the lane's sums.
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

// Scales and biases of a thread's two rows of a tile that has all its rows.
struct RowTerms {
  float scales[2], biases[2];

  // A bias of -0 changes nothing.
  KINGLET_HOST_DEVICE static RowTerms Load(const IntegerProduct& p, uint32_t row_tile,
                                           uint32_t thread) {
    RowTerms terms;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t row = row_tile * kTileRows + TileRow(thread, 2 * i);
      terms.scales[i] = p.matrix.scales[row];
      terms.biases[i] = p.finish.bias != nullptr ? p.finish.bias[row] : -0.0f;
    }
    return terms;
  }
  // The logit of sum i, without ReLU and with a finish of scale 1.
  KINGLET_HOST_DEVICE float LogitOf(float sum, uint32_t i, float x_scale) const {
    return sum * (scales[i / 2] * x_scale) + biases[i / 2];
  }
};

// The products of a work item's logits as sums of bytes.
class ByteLogits {
 public:
  static constexpr uint32_t kTiles = SumsOfProducts<false>::kTilesOfWarp;
  // Block-wide, for lanes [first_lane, first_lane + lanes).
  KINGLET_HOST_DEVICE ByteLogits(const SumsOfProducts<false>& p, const Work& work,
                                 SharedMemory shared, uint32_t first_lane, uint32_t lanes)
      : p_(p.product),
        padded_(p.PaddedColumns()),
        x_(shared, SumsOfProducts<false>::kStreams, IntegerProduct::Stride(padded_)) {
    StageStreams(work, p_.x, p_.x_is_byte, first_lane, lanes, 0, p_.matrix.cols, padded_, x_);
  }
  // By one warp: chooses the streams from `first_stream` on, which are its lanes.
  KINGLET_HOST_DEVICE void Begin(const Warp&, const Work&, uint32_t first_stream,
                                 const LaneRange&) {
    first_stream_ = first_stream;
  }
  // By one warp: the sums of a tile of rows.
  KINGLET_HOST_DEVICE void Multiply(const Warp& warp, uint32_t row_tile,
                                    PerThread<TileFloats<kTiles>>& to) const {
    TileSums<kTiles> sums{};
    WithPlanes(p_.matrix.form == ByteForm::kByte, p_.x_is_byte, [&](auto bytes, auto bytes_x) {
      AddProductsOfCluster<kTiles, decltype(bytes)::value, decltype(bytes_x)::value>(
          warp, p_.matrix, row_tile, 0, padded_, x_, first_stream_, sums);
    });
    warp.EachThread([&](uint32_t, uint32_t reg) {
      for (uint32_t s = 0; s < kTiles; ++s) {
        for (uint32_t i = 0; i < 4; ++i) {
          const PlaneSums& of_tile = sums.tiles[s][reg];
          to[reg].values[s][i] = p_.fits_int32 ? static_cast<float>(SumModulo(of_tile, i))
                                               : static_cast<float>(SumInFull(of_tile, i));
        }
      }
    });
  }

 private:
  const IntegerProduct& p_;
  uint32_t padded_;  // columns
  StreamBytes x_;
  uint32_t first_stream_ = 0;
};

// Likewise, of a narrow matrix, in half precision.
class HalfLogits {
 public:
  static constexpr uint32_t kTiles = SumsOfProducts<true>::kTilesOfWarp;
  KINGLET_HOST_DEVICE HalfLogits(const SumsOfProducts<true>& p, const Work&, const SharedMemory&,
                                 uint32_t, uint32_t)
      : p_(p.product) {}
  KINGLET_HOST_DEVICE void Begin(const Warp& warp, const Work& work, uint32_t,
                                 const LaneRange& own) {
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      for (uint32_t s = 0; s < kTiles; ++s) {
        const uint32_t stream = s * kTileStreams + thread / 4;
        int32_t digits[2] = {};
        for (uint32_t i = 0; i < 2 && stream < own.count; ++i) {
          const uint32_t column = FirstColumn(thread) + i;
          if (column >= p_.matrix.cols) continue;
          const int32_t code = work.At<int16_t>(work.lanes[own.first + stream], p_.x.place)[column];
          // Both have the code's sign, so that magnitudes add up to the code's.
          digits[i] = thread % 4 < 2 ? code / kDigit * kDigit : code % kDigit;
        }
        x_[s][reg] = HalfPair::Of(digits[0], digits[1]);
      }
    });
  }
  KINGLET_HOST_DEVICE void Multiply(const Warp& warp, uint32_t row_tile,
                                    PerThread<TileFloats<kTiles>>& to) const {
    PerThread<HalfTileA> rows;
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      struct alignas(4) Two {
        int16_t codes[2];
      };
      for (uint32_t half = 0; half < 2; ++half) {
        const uint64_t row = row_tile * kTileRows + TileRow(thread, 2 * half);
        const Two two = LoadAligned<Two>(p_.matrix.low + row * sizeof(NarrowRow) +
                                         FirstColumn(thread) * sizeof(int16_t));
        rows[reg].rows[half] = HalfPair::Of(two.codes[0], two.codes[1]);
      }
    });
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t s = 0; s < kTiles; ++s) {
      PerThread<HalfTileD> sums;
      MultiplyHalfTiles(warp, rows, x_[s], sums);
      warp.EachThread([&](uint32_t, uint32_t reg) {
        for (uint32_t i = 0; i < 4; ++i) to[reg].values[s][i] = sums[reg].sums[i];
      });
    }
  }

 private:
  static constexpr int32_t kDigit = 128;
  // The first of a thread's two columns of the matrix.
  KINGLET_HOST_DEVICE static uint32_t FirstColumn(uint32_t thread) { return thread % 2 * 2; }

  const IntegerProduct& p_;
  PerThread<HalfPair> x_[kTiles];
};

// Block-wide: computes the logits of a work item. On every warp that has work it calls begin(warp,
// sum tile, its lanes); then use(warp, stream tile, reg, i, logit) for sum i of a thread
// (PerThread element `reg`), for each logit of the sum tile, those of one chain in order; then
// end(warp, sum tile, its lanes).
template <bool kHalves, class Begin, class Use, class End>
KINGLET_HOST_DEVICE void ForEachLogit(const SumsOfProducts<kHalves>& p, const Work& work,
                                      SharedMemory shared, const Begin& begin, const Use& use,
                                      const End& end) {
  using Node = SumsOfProducts<kHalves>;
  constexpr uint32_t kTiles = Node::kTilesOfWarp;
  const uint32_t items = p.ItemsOfLaneGroup(work.block.warps());
  const uint32_t first_lane = work.item / items * Node::kStreams;
  const uint32_t lanes = Least(work.lane_count - first_lane, uint32_t{Node::kStreams});
  const ByteMatrix& matrix = p.product.matrix;
  std::conditional_t<kHalves, HalfLogits, ByteLogits> products(p, work, shared, first_lane, lanes);
  work.block.EachWarp([&](const Warp& warp) {
    const uint32_t sum_tile = work.item % items * (work.block.warps() / Node::kWarpsOfTile) +
                              warp.index() / Node::kWarpsOfTile;
    const uint32_t first_stream = warp.index() % Node::kWarpsOfTile * kTiles * kTileStreams;
    if (sum_tile >= p.logits.TileCount() || first_stream >= lanes) return;
    const LaneRange own = {first_lane + first_stream,
                           Least(lanes - first_stream, kTiles * kTileStreams)};
    begin(warp, sum_tile, own);
    products.Begin(warp, work, first_stream, own);
    PerThread<StreamFloats<kTiles>> scales;
    LoadOfStreams(warp, work, own, scales,
                  [&](const Lane& lane) { return work.ScaleOf(lane, p.product.x); });
    const bool plain = !p.product.finish.relu && p.product.finish.scale == 1.0f;
    const uint32_t plain_rows = !plain ? 0 : Least(matrix.rows, p.logits.count);
    for (uint32_t tile = 0; tile * kTileRows < p.logits.TileSize(sum_tile); ++tile) {
      const uint32_t row_tile = sum_tile * (kSumTile / kTileRows) + tile;
      const bool whole = (row_tile + 1) * kTileRows <= plain_rows;
      PerThread<RowTerms> rows;
      if (whole) {
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          rows[reg] = RowTerms::Load(p.product, row_tile, thread);
        });
      }
      PerThread<TileFloats<kTiles>> sums;
      if (row_tile < matrix.row_tiles()) products.Multiply(warp, row_tile, sums);
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t s = 0; s < kTiles; ++s) {
        if (whole && (s + 1) * kTileStreams <= own.count) {
          // Nearly all tiles: no test for single logits.
          warp.EachThread([&](uint32_t, uint32_t reg) {
            for (uint32_t i = 0; i < 4; ++i) {
              use(warp, s, reg, i,
                  rows[reg].LogitOf(sums[reg].values[s][i], i, scales[reg].values[s][i % 2]));
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
                row < matrix.rows ? FinishSum(p.product, sums[reg].values[s][i], row,
                                              scales[reg].values[s][i % 2])
                                  : work.At<float>(work.lanes[own.first + stream], p.logits.x)[row];
            use(warp, s, reg, i, logit);
          }
        });
      }
    }
    end(warp, sum_tile, own);
  });
}

// By one warp: combines the values of a lane that threads 4 apart have, which have neighbouring
// rows, so that each has the result. combine(a, b): a is of the rows before b.
template <uint32_t kTiles, class Combine>
KINGLET_HOST_DEVICE void FoldRows(const Warp& warp, PerThread<StreamFloats<kTiles>>& of_warp,
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
      warp.EachThread([&](uint32_t, uint32_t reg) { rows[reg] = of_warp[reg].values[s][i]; });
      warp.Reduce(rows, 16, 4, combine);
      warp.EachThread([&](uint32_t, uint32_t reg) { of_warp[reg].values[s][i] = rows[reg]; });
    }
  }
}

// Block-wide: what `sums` keeps of the work item's sum tiles.
template <bool kHalves>
KINGLET_HOST_DEVICE void SumLogits(const SumsOfProducts<kHalves>& p, const Work& work,
                                   SharedMemory shared, const LogitSums& sums) {
  constexpr uint32_t kTiles = SumsOfProducts<kHalves>::kTilesOfWarp;
  PerWarp<PerThread<TileFloats<kTiles>>> chains;
  PerWarp<PerThread<StreamFloats<kTiles>>> largest, references;
  ForEachLogit(
      p, work, shared,
      [&](const Warp& warp, uint32_t tile, const LaneRange& lanes) {
        warp.EachThread([&](uint32_t, uint32_t reg) {
          for (uint32_t s = 0; s < kTiles; ++s) {
            for (float& chain : chains[warp][reg].values[s]) chain = 0.0f;
            for (float& own : largest[warp][reg].values[s]) own = LogitSums::Least();
          }
        });
        LoadOfStreams(warp, work, lanes, references[warp],
                      [&](const Lane& lane) { return sums.Reference(work, lane, tile); });
      },
      [&](const Warp& warp, uint32_t s, uint32_t reg, uint32_t i, float logit) {
        chains[warp][reg].values[s][i] +=
            SoftmaxTerm(logit - references[warp][reg].values[s][i % 2]);
        float& own = largest[warp][reg].values[s][i % 2];
        own = LogitSums::Larger(own, logit);
      },
      [&](const Warp& warp, uint32_t tile, const LaneRange& lanes) {
        // The 16 chains are folded as in rule 4: those 8 apart, which one thread has, then 4, 2, 1.
        PerThread<StreamFloats<kTiles>> folded;
        warp.EachThread([&](uint32_t, uint32_t reg) {
          for (uint32_t s = 0; s < kTiles; ++s) {
            for (uint32_t i = 0; i < 2; ++i) {
              const float* const own = chains[warp][reg].values[s];
              folded[reg].values[s][i] = own[i] + own[i + 2];
            }
          }
        });
        FoldRows(warp, folded, LogitSums::Sum);
        FoldRows(warp, largest[warp], LogitSums::Larger);
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          if (TileRow(thread, 0) != 0) return;
          for (uint32_t s = 0; s < kTiles; ++s) {
            for (uint32_t i = 0; i < 2; ++i) {
              const uint32_t stream = s * kTileStreams + TileStream(thread, i);
              if (stream >= lanes.count) continue;
              sums.Write(work, work.lanes[lanes.first + stream], tile, folded[reg].values[s][i],
                         largest[warp][reg].values[s][i]);
            }
          }
        });
      });
}

}  // namespace internal

template <bool kHalves>
KINGLET_HOST_DEVICE void Run(const SumsOfProducts<kHalves>& p, const Work& work) {
  SharedMemory shared(work.block);
  auto* const again = shared.Take<uint32_t>(1);
  work.block.ForEach(1, [&](uint64_t) { *again = 0; });
  for (bool own_references = false;; own_references = true) {
    internal::SumLogits(p, work, shared, internal::LogitSums{p.logits, own_references, again});
    if (own_references || *again == 0) return;
  }
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_PRODUCTS_H_
