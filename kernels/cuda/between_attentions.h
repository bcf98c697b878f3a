// What a quantised decoder computes between the attentions of two layers, for a tile of lanes, as
// one node: the last part of one layer and the first part of the next. C++17.
//
//   residual += out(attended);  residual += down(ReLU(up(norm(residual))))    of the layer before
//   q, k, v = qkv(norm(residual))                                             of the layer after
//
// A thread block keeps the lanes' residual streams and the codes between products in shared memory,
// so each weight that it reads is multiplied for 32 lanes. Results are those of the nodes of the
// same layers (vectors.h, product.h), bit for bit.
#ifndef KINGLET_KERNELS_CUDA_BETWEEN_ATTENTIONS_H_
#define KINGLET_KERNELS_CUDA_BETWEEN_ATTENTIONS_H_

#include <cmath>
#include <cstdint>

#include "kernels/cuda/product.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// A layer norm whose result becomes codes.
struct QuantisedNorm {
  const float* gain;
  const float* bias;
  float epsilon;
  Rounding rounding;
};

// A layer, without its attention.
struct TileLayer {
  enum Stage : uint32_t { kOut, kUp, kDown, kQkv };

  QuantisedNorm norm, inner_norm;
  IntegerProduct products[4];                  // by Stage; all sums fit 32 bits
  Rounding qkv_codes, attended, units, outer;  // of the products' results; of out's vector
  bool units_are_bytes;                        // codes of inner units are from 0 to 255
  Place attention_reads;                       // codes of q, k and v
  Place attention_writes;                      // floats: the vector of `out`
};

// A work item is a tile of lanes.
struct BetweenAttentions {
  static constexpr uint32_t kStreamTiles = 4, kLanes = kStreamTiles * kTileStreams;

  const TileLayer* before;  // in device memory; null before the first layer
  const TileLayer* after;   // null after the last layer
  Place residual;           // [width] of floats
  uint32_t width;           // at most kSumTile
  uint32_t columns;         // of the longest vector of qkv, out and up
  uint32_t inner_columns;   // likewise of down, and rows of qkv
  bool quantises;           // also writes the codes of the residual stream
  Place codes;              // [width] of int16
  Rounding rounding;

  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return DivideUp(lanes, uint32_t{kLanes});
  }
  // Of a lane's residual stream in shared memory: the threads of a warp, which have 8 rows of 8
  // lanes, have no bank conflicts.
  KINGLET_HOST_DEVICE uint32_t ResidualStride() const { return DivideUp(width, 32u) * 32 + 4; }
  KINGLET_HOST_DEVICE static uint64_t StrideOf(uint32_t vector) {
    return IntegerProduct::Stride(DivideUp(vector, uint32_t{kTileDepth}) * kTileDepth);
  }
  // Bytes of the planes of all lanes' vectors.
  KINGLET_HOST_DEVICE static uint64_t BytesOf(uint32_t vector) {
    return 2 * SharedMemory::Bytes<uint32_t>(kLanes * StrideOf(vector) / 4);
  }
  // Sums of a warp that wait to be used: of its rows and of half of the stream tiles.
  static constexpr uint32_t kWaitingTiles = kStreamTiles / 2;
  static constexpr uint32_t kWaiting = kTileRows * kWaitingTiles * kTileStreams;
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return BytesOf(columns) + BytesOf(inner_columns) +
           SharedMemory::Bytes<float>(uint64_t{kLanes} * ResidualStride()) +
           SharedMemory::Bytes<float>(uint64_t{kBlockWarps} * kWaiting);
  }
};

namespace internal {

// A thread block's work for a tile of lanes.
class LaneTile {
 public:
  KINGLET_HOST_DEVICE LaneTile(const BetweenAttentions& p, const Work& work)
      : p_(p),
        work_(work),
        block_(work.block),
        first_(work.item * BetweenAttentions::kLanes),
        lanes_(Least(work.lane_count - first_, uint32_t{BetweenAttentions::kLanes})),
        rest_(work.block.shared() + BetweenAttentions::BytesOf(p.columns) +
              BetweenAttentions::BytesOf(p.inner_columns)) {}

  KINGLET_HOST_DEVICE void Run() {
    EachElement(p_.width, [&](const Lane& lane, uint32_t s, uint32_t i) {
      Residual(s, i) = work_.At<float>(lane, p_.residual)[i];
    });
    const uint32_t begin = p_.before == nullptr ? TileLayer::kQkv : TileLayer::kOut;
    const uint32_t end = p_.after == nullptr ? TileLayer::kQkv : TileLayer::kQkv + 1;
    // A loop, so that products are compiled once.
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
    for (uint32_t stage = begin; stage < end; ++stage) {
      RunStage(stage);
    }
    EachElement(p_.width, [&](const Lane& lane, uint32_t s, uint32_t i) {
      const float x = Residual(s, i);
      work_.At<float>(lane, p_.residual)[i] = x;
      if (p_.quantises) work_.At<int16_t>(lane, p_.codes)[i] = p_.rounding(x);
    });
  }

 private:
  using Stage = TileLayer::Stage;

  // The vectors of qkv, out and up, or those of down, before which codes of q, k and v lie there.
  // Addresses are made anew from the block's, so that nvcc knows that they are shared memory.
  KINGLET_HOST_DEVICE StreamBytes Vectors(bool inner) const {
    const uint32_t columns = inner ? p_.inner_columns : p_.columns;
    const uint64_t at = inner ? BetweenAttentions::BytesOf(p_.columns) : 0;
    StreamBytes planes;
    planes.stride = static_cast<uint32_t>(BetweenAttentions::StrideOf(columns));
    planes.low = reinterpret_cast<uint32_t*>(block_.shared() + at);
    planes.high = planes.low + uint64_t{BetweenAttentions::kLanes} * planes.stride / 4;
    return planes;
  }
  KINGLET_HOST_DEVICE float& Residual(uint32_t s, uint32_t i) const {
    return reinterpret_cast<float*>(rest_)[s * p_.ResidualStride() + i];
  }
  KINGLET_HOST_DEVICE float* Waiting(const Warp& warp) const {
    return reinterpret_cast<float*>(rest_) +
           uint64_t{BetweenAttentions::kLanes} * p_.ResidualStride() +
           warp.index() * BetweenAttentions::kWaiting;
  }
  // Block-wide: f(lane, s, i) for every element i < n of a vector of every lane, number s of the
  // tile.
  template <class F>
  KINGLET_HOST_DEVICE void EachElement(uint32_t n, const F& f) const {
    block_.ForEach(uint64_t{lanes_} * n, [&](uint64_t item) {
      const uint32_t s = static_cast<uint32_t>(item) / n, i = static_cast<uint32_t>(item) % n;
      f(work_.lanes[first_ + s], s, i);
    });
  }

  KINGLET_HOST_DEVICE void RunStage(uint32_t stage) const {
    const TileLayer& layer = stage == Stage::kQkv ? *p_.after : *p_.before;
    const StreamBytes x = Vectors(stage == Stage::kDown), inner = Vectors(true);
    if (stage == Stage::kOut) {
      EachElement(layer.products[stage].matrix.cols, [&](const Lane& lane, uint32_t s, uint32_t i) {
        x.Set(s, i, layer.attended(work_.At<float>(lane, layer.attention_writes)[i]));
      });
    } else if (stage != Stage::kDown) {
      Normalise(stage == Stage::kUp ? layer.inner_norm : layer.norm, x);
    }
    const Rounding rounding = stage == Stage::kUp     ? layer.units
                              : stage == Stage::kDown ? layer.outer
                                                      : layer.qkv_codes;
    const bool has_high = stage != Stage::kDown || !layer.units_are_bytes;
    Multiply(layer.products[stage], x, has_high, [&](uint32_t s, uint32_t row, float y) {
      if (stage == Stage::kOut) {
        Residual(s, row) += y;
        return;
      }
      const int16_t code = rounding(y);
      if (stage == Stage::kDown) {
        Residual(s, row) += static_cast<float>(code) * rounding.scale;
      } else {
        inner.Set(s, row, code);
      }
    });
    if (stage != Stage::kQkv) return;
    EachElement(layer.products[stage].matrix.rows, [&](const Lane& lane, uint32_t s, uint32_t i) {
      work_.At<int16_t>(lane, layer.attention_reads)[i] = inner.Get(s, i);
    });
  }

  // Block-wide: the codes of each lane's norm. Half a warp has a lane, and a thread a chain of the
  // sums (rule 4 of docs/NUMERICS.md).
  KINGLET_HOST_DEVICE void Normalise(const QuantisedNorm& norm, const StreamBytes& codes) const {
    static_assert(2 * kSumChains == kWarpThreads);
    const auto count = static_cast<float>(p_.width);
    block_.EachWarp([&](const Warp& warp) {
      for (uint32_t first = 2 * warp.index(); first < lanes_; first += 2 * block_.warps()) {
        const auto lane_of = [&](uint32_t thread) {
          return Least(first + thread / kSumChains, lanes_ - 1);
        };
        PerThread<float> mean =
            WarpSum(warp, p_.width, [&](float sum, uint64_t i, uint32_t thread, uint32_t) {
              return sum + Residual(lane_of(thread), static_cast<uint32_t>(i));
            });
        warp.EachThread([&](uint32_t, uint32_t reg) { mean[reg] /= count; });
        const PerThread<float> squares =
            WarpSum(warp, p_.width, [&](float sum, uint64_t i, uint32_t thread, uint32_t reg) {
              const float x = Residual(lane_of(thread), static_cast<uint32_t>(i));
              const float centred = x - mean[reg];
              return fmaf(centred, centred, sum);
            });
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          if (first + thread / kSumChains >= lanes_) return;
          const uint32_t s = lane_of(thread);
          const float deviation = sqrtf(squares[reg] / count + norm.epsilon);
          for (uint32_t i = thread % kSumChains; i < p_.width; i += kSumChains) {
            const float value = (Residual(s, i) - mean[reg]) / deviation * norm.gain[i];
            codes.Set(s, i, norm.rounding(value + norm.bias[i]));
          }
        });
      }
    });
  }

  // Block-wide: use(s, row, y) for every row and lane. A warp has 16 rows of all lanes. Its sums
  // take a detour through shared memory, so that neighbouring threads use neighbouring rows.
  template <class Use>
  KINGLET_HOST_DEVICE void Multiply(const IntegerProduct& product, const StreamBytes& x,
                                    bool has_high_x, const Use& use) const {
    constexpr uint32_t kAhead = 2, kTiles = BetweenAttentions::kStreamTiles;
    constexpr uint32_t kWaitingTiles = BetweenAttentions::kWaitingTiles;
    const ByteMatrix matrix = product.matrix;
    block_.EachWarp([&](const Warp& warp) {
      float* const waiting = Waiting(warp);
      for (uint32_t row_tile = warp.index(); row_tile < matrix.row_tiles();
           row_tile += block_.warps()) {
        TileSums<kTiles> sums{};
        // The form is tested for every tile, which costs little compared with the products.
        AddTileProducts<kTiles, kAhead, false, false>(
            warp, matrix, uint64_t{row_tile} * matrix.col_tiles(), {0, 1, matrix.col_tiles()}, x,
            [&](uint64_t tile, uint32_t thread) { return LoadHigh(matrix, tile, thread); },
            [](uint32_t s, uint32_t thread) { return s * kTileStreams + thread / 4; }, sums,
            has_high_x);
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
        for (uint32_t first = 0; first < kTiles; first += kWaitingTiles) {
          warp.EachThread([&](uint32_t thread, uint32_t reg) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
            for (uint32_t t = 0; t < kWaitingTiles; ++t) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
              for (uint32_t i = 0; i < 4; ++i) {
                const uint32_t s = t * kTileStreams + TileStream(thread, i);
                waiting[s * kTileRows + TileRow(thread, i)] =
                    static_cast<float>(SumModulo(sums.tiles[first + t][reg], i));
              }
            }
          });
          warp.Barrier();
          warp.EachThread([&](uint32_t thread, uint32_t) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
            for (uint32_t at = thread; at < BetweenAttentions::kWaiting; at += kWarpThreads) {
              const uint32_t row = row_tile * kTileRows + at % kTileRows;
              const uint32_t s = first * kTileStreams + at / kTileRows;
              if (row >= matrix.rows || s >= lanes_) continue;
              use(s, row, FinishSum(product, waiting[at], row, product.x.scale));
            }
          });
          warp.Barrier();
        }
      }
    });
  }

  const BetweenAttentions& p_;
  const Work& work_;
  const Block& block_;
  const uint32_t first_, lanes_;  // of the tile

  std::byte* const rest_;  // shared memory after all vectors: residual streams, waiting sums
};

}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const BetweenAttentions& p, const Work& work) {
  internal::LaneTile(p, work).Run();
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BETWEEN_ATTENTIONS_H_
