// Attention of one token for many lanes, where keys and values are rings of 9-bit codes: a thread
// block has all heads of a lane. C++17.
//
// Products are tiles of bytes (byte_product.h). For the scores a tile has 16 slots and 8 heads: the
// query of head h is in column h, with zeros where other heads' keys are, so that one product of
// full rows serves 8 heads. For the weighted sums a tile has 16 columns of the values and 8 heads,
// of which each column needs one. Results are those of attention.h, bit for bit.
#ifndef KINGLET_KERNELS_CUDA_ATTEND_LANES_H_
#define KINGLET_KERNELS_CUDA_ATTEND_LANES_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/attention_head.h"
#include "kernels/cuda/nine_bit_tiles.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/short_products.h"

namespace kinglet::cuda {

// A work item is a lane. The attention's weights are not written.
struct AttendLanes {
  static constexpr int32_t kLargestWeight = 255;  // code
  Attention attention;

  // Whether the node can run this attention, whose weights' largest code is given.
  static bool Takes(const Attention& p, int64_t largest_weight) {
    return p.codes && p.key_row != 0 && p.value_row != 0 && p.positions.rows != nullptr &&
           !p.positions.of_heads && p.positions.constants == nullptr &&
           p.positions.count == p.window && !p.of_source && !p.masks_token && p.fits_int32 &&
           p.window <= kBlockThreads && largest_weight <= kLargestWeight && p.key_size <= kSumTile;
  }
  KINGLET_HOST_DEVICE uint32_t PaddedSlots() const {
    return DivideUp(attention.window, uint32_t{kTileDepth}) * kTileDepth;
  }
  KINGLET_HOST_DEVICE uint64_t RingBytes(uint32_t row) const {
    return SharedMemory::Bytes<uint8_t>(attention.window * NineBitRow{row}.Bytes());
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const { return lanes; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    const uint64_t slots = uint64_t{attention.heads} * PaddedSlots();
    return RingBytes(attention.key_row) + RingBytes(attention.value_row) +
           SharedMemory::Bytes<float>(slots) + SharedMemory::Bytes<uint8_t>(slots) +
           2 * SharedMemory::Bytes<uint8_t>(NineBitRow{attention.key_row}.Padded()) +
           SharedMemory::Bytes<uint32_t>(attention.heads);
  }
};

namespace internal {

// Byte j of word i becomes byte i of word j.
KINGLET_HOST_DEVICE inline void TransposeBytes(uint32_t (&w)[4]) {
#if KINGLET_CUDA_ON_DEVICE
  const uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
#else
  uint32_t turned[4] = {};
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint32_t j = 0; j < 4; ++j) turned[j] |= (w[i] >> (8 * j) & 0xffu) << (8 * i);
  }
  memcpy(w, turned, sizeof turned);
#endif
}

class LaneAttention {
 public:
  KINGLET_HOST_DEVICE LaneAttention(const AttendLanes& node, const Work& work)
      : p_(node.attention),
        slots_(node.PaddedSlots()),
        work_(work),
        block_(work.block),
        lane_(work.lanes[work.item]),
        window_(lane_.position, p_.window, p_.restarts, p_.ring),
        is_ring_(p_.ring == p_.window),
        first_(p_.masked ? window_.FirstFilled() : 0),
        qkv_(work.At<int16_t>(lane_, p_.query)),
        shared_(work.block),
        keys_(shared_.Take<uint8_t>(p_.window * NineBitRow{p_.key_row}.Bytes())),
        values_(shared_.Take<uint8_t>(p_.window * NineBitRow{p_.value_row}.Bytes())),
        scores_(shared_.Take<float>(uint64_t{p_.heads} * slots_)),
        codes_(shared_.Take<uint8_t>(uint64_t{p_.heads} * slots_)),
        query_(Digits::Take(shared_, NineBitRow{p_.key_row}.Padded())),
        is_negative_(shared_.Take<uint32_t>(p_.heads)) {}

  KINGLET_HOST_DEVICE void Run() const {
    Load(p_.keys, {p_.key_row}, p_.key_size, p_.key_size, keys_);
    Load(p_.values, {p_.value_row}, p_.value_size, 2 * p_.key_size, values_);
    const NineBitRow row{p_.key_row};
    block_.ForEach(row.Padded(), [&](uint64_t i) {
      const auto at = static_cast<uint32_t>(i);
      query_.Set(at, at < row.count ? QueryCode(at / p_.key_size, at % p_.key_size) : 0);
    });
    Score();
    Weigh();
    AddUp();
  }

 private:
  KINGLET_HOST_DEVICE int16_t QueryCode(uint32_t head, uint32_t i) const {
    return qkv_[head * p_.query_stride + i];
  }
  // Block-wide: copies a ring to shared memory, with zeros in slots that no token has filled, and
  // stores the token's own row in both. Its codes are `own` elements after a head's query.
  KINGLET_HOST_DEVICE void Load(const Place& ring, const NineBitRow& row, uint32_t size,
                                uint32_t own, uint8_t* to) const {
    uint8_t* const all = work_.At<uint8_t>(lane_, ring);
    if (is_ring_) {
      CopyRows(block_, row, all, window_.filled, p_.window, to);
    } else {
      // The window's rows are neighbours, but where the ring ends.
      const uint32_t unfilled = window_.FirstFilled(), first = window_.Slot(unfilled);
      const uint32_t ahead = Least(window_.filled, p_.ring - first);
      const uint64_t bytes = row.Bytes();
      CopyRows(block_, row, all, 0, unfilled, to);
      CopyRows(block_, row, all + first * bytes, ahead, ahead, to + unfilled * bytes);
      CopyRows(block_, row, all, window_.filled, window_.filled - ahead,
               to + (unfilled + ahead) * bytes);
    }
    const uint64_t newest = SharedSlot(p_.window - 1) * row.Bytes();
    uint8_t* const kept = all + window_.newest * row.Bytes();
    block_.ForEach(row.Bytes(), [&](uint64_t at) {
      const uint8_t byte = row.Byte(at, [&](uint64_t i) {
        const auto code = static_cast<uint32_t>(i);
        return QueryCode(code / size, own + code % size);
      });
      to[newest + at] = kept[at] = byte;
    });
  }
  // The row of window slot s, or of the last one.
  KINGLET_HOST_DEVICE const uint8_t* RowOf(const uint8_t* ring, const NineBitRow& row,
                                           uint32_t s) const {
    return ring + SharedSlot(Least(s, p_.window - 1)) * row.Bytes();
  }
  // Where shared memory has the row of window slot s: as the ring, or, of a longer ring, in order.
  KINGLET_HOST_DEVICE uint32_t SharedSlot(uint32_t s) const {
    return is_ring_ ? window_.Slot(s) : s;
  }
  KINGLET_HOST_DEVICE float PositionTerm(uint32_t head, uint32_t s) const {
    const float* const rows = p_.positions.rows;
    return ThreadTileSum(p_.key_size, [&](float sum, uint64_t k) {
      const float q =
          static_cast<float>(QueryCode(head, static_cast<uint32_t>(k))) * p_.query_scale;
      return fmaf(q, p_.positions.in_columns ? rows[k * p_.window + s] : rows[s * p_.key_size + k],
                  sum);
    });
  }

  // Block-wide: the scores of all slots. A warp has 16 of them.
  KINGLET_HOST_DEVICE void Score() const {
    const NineBitRow row{p_.key_row};
    const uint32_t steps = static_cast<uint32_t>(row.Padded()) / kTileDepth;
    block_.EachWarp([&](const Warp& warp) {
      for (uint32_t tile = warp.index(); tile * kTileRows < p_.window; tile += block_.warps()) {
        for (uint32_t heads = 0; heads < p_.heads; heads += kTileStreams) {
          PerThread<PlaneSums> sums{};
          for (uint32_t step = 0; step < steps; ++step) {
            PerThread<TileA> low, signs;
            PerThread<TileB> low_x, high_x;
            warp.EachThread([&](uint32_t thread, uint32_t reg) {
              LoadNineBitTile(
                  row, step, thread,
                  [&](uint32_t i) { return RowOf(keys_, row, tile * kTileRows + i); }, low[reg],
                  signs[reg]);
              for (uint32_t part = 0; part < 2; ++part) {
                const uint32_t column = step * kTileDepth + 16 * part + thread % 4 * 4;
                const bool is_own = column / p_.key_size == heads + thread / 4;
                low_x[reg].registers[part] =
                    is_own ? LoadAligned<uint32_t>(query_.low + column) : 0;
                high_x[reg].registers[part] =
                    is_own ? LoadAligned<uint32_t>(query_.high + column) : 0;
              }
            });
            AddPlaneProducts<false, false>(warp, low, signs, low_x, high_x, sums);
          }
          warp.EachThread([&](uint32_t thread, uint32_t reg) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
            for (uint32_t i = 0; i < 4; ++i) {
              const uint32_t s = tile * kTileRows + TileRow(thread, i);
              const uint32_t head = heads + TileStream(thread, i);
              if (head >= p_.heads) continue;
              scores_[head * slots_ + s] =
                  static_cast<float>(SumModulo(sums[reg], i)) * p_.content_scale;
            }
          });
        }
        warp.Barrier();
        // Neighbouring threads have neighbouring slots, and so neighbouring floats of a column.
        warp.EachThread([&](uint32_t thread, uint32_t) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
          for (uint32_t i = thread; i < p_.heads * kTileRows; i += kWarpThreads) {
            const uint32_t head = i / kTileRows, s = tile * kTileRows + i % kTileRows;
            if (s >= p_.window) continue;
            float& score = scores_[head * slots_ + s];
            score = (score + PositionTerm(head, s)) * p_.scale;
          }
        });
      }
    });
  }

  // Block-wide: codes of the weights of all slots. A warp has a head.
  KINGLET_HOST_DEVICE void Weigh() const {
    block_.EachWarp([&](const Warp& warp) {
      for (uint32_t head = warp.index(); head < p_.heads; head += block_.warps()) {
        float* const scores = scores_ + head * slots_;
        PerThread<float> largest;
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          largest[reg] = -INFINITY;
          for (uint32_t s = thread; s < p_.window; s += kWarpThreads) {
            if (s >= first_) largest[reg] = LargerNumber(largest[reg], scores[s]);
          }
        });
        warp.Reduce(largest, kWarpThreads / 2, 1, LargerNumber);
        // As BlockLargest: a NaN counts only if it is the first number.
        const float first_score = scores[first_];
        warp.Barrier();
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          const float most = first_score != first_score ? first_score : largest[reg];
          for (uint32_t s = thread; s < p_.window; s += kWarpThreads) {
            scores[s] = s < first_ ? 0.0f : Exp(scores[s] - most);
          }
        });
        warp.Barrier();
        const PerThread<float> total =
            WarpSum(warp, p_.window,
                    [&](float sum, uint64_t s, uint32_t, uint32_t) { return sum + scores[s]; });
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          // Of a sum that is NaN every weight is, and has the least code.
          if (thread == 0) is_negative_[head] = total[reg] != total[reg] ? 1 : 0;
          for (uint32_t s = thread; s < slots_; s += kWarpThreads) {
            const bool is_seen = s >= first_ && s < p_.window;
            const int32_t code = is_seen ? p_.rounding(scores[s] / total[reg]) : 0;
            codes_[head * slots_ + s] = static_cast<uint8_t>(code < 0 ? -code : code);
          }
        });
      }
    });
  }

  // Block-wide: the weighted sums. A warp has 32 columns of the values.
  KINGLET_HOST_DEVICE void AddUp() const {
    constexpr uint32_t kColumns = 32;
    const NineBitRow row{p_.value_row};
    block_.EachWarp([&](const Warp& warp) {
      for (uint32_t first = warp.index() * kColumns; first < row.count;
           first += block_.warps() * kColumns) {
        for (uint32_t heads = 0; heads < p_.heads; heads += kTileStreams) {
          PerThread<TileD> low[2]{}, signs[2]{};  // of columns 4 g, 4 g + 1, and of the next two
          for (uint32_t slot = 0; slot < slots_; slot += kTileDepth) {
            PerThread<TileA> a[2], b[2];
            PerThread<TileB> weights;
            warp.EachThread([&](uint32_t thread, uint32_t reg) {
              const uint32_t g = thread / 4, t = thread % 4;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
              for (uint32_t half = 0; half < 2; ++half) {
                uint32_t bytes[4], bits[4];
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
                for (uint32_t j = 0; j < 4; ++j) {
                  const uint8_t* const value = RowOf(values_, row, slot + 16 * half + 4 * t + j);
                  bytes[j] = LoadAligned<uint32_t>(value + first + 4 * g);
                  bits[j] =
                      SignBytes(LoadAligned<uint32_t>(value + row.SignByte(first)) >> (4 * g));
                }
                TransposeBytes(bytes);
                TransposeBytes(bits);
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
                for (uint32_t j = 0; j < 4; ++j) {
                  a[j / 2][reg].registers[j % 2 + 2 * half] = bytes[j];
                  b[j / 2][reg].registers[j % 2 + 2 * half] = bits[j];
                }
                const uint32_t head = heads + g;
                const uint8_t* const codes = codes_ + head * slots_ + slot + 16 * half + 4 * t;
                weights[reg].registers[half] = head < p_.heads ? LoadAligned<uint32_t>(codes) : 0;
              }
            });
            for (uint32_t pair = 0; pair < 2; ++pair) {
              MultiplyTiles<false, false>(warp, a[pair], weights, low[pair]);
              MultiplyTiles<true, false>(warp, b[pair], weights, signs[pair]);
            }
          }
          warp.EachThread([&](uint32_t thread, uint32_t reg) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
            for (uint32_t i = 0; i < 8; ++i) {
              const TileD& bytes = low[i / 4][reg];
              const TileD& bits = signs[i / 4][reg];
              const uint32_t column = first + TileRow(thread, i % 4) % 8 * 4 + i / 2;
              const uint32_t head = heads + TileStream(thread, i % 4);
              if (column >= row.count || column / p_.value_size != head) continue;
              const int32_t sum = bytes.sums[i % 4] + 256 * bits.sums[i % 4];
              work_.At<float>(lane_, p_.out)[column] =
                  static_cast<float>(is_negative_[head] != 0 ? -sum : sum) * p_.value_scale;
            }
          });
        }
      }
    });
  }

  const Attention& p_;
  const uint32_t slots_;  // of the window, padded to full tiles
  const Work& work_;
  const Block& block_;
  const Lane& lane_;
  const RingWindow window_;
  const bool is_ring_;    // the ring has the window's slots, and no more
  const uint32_t first_;  // the first visible slot
  const int16_t* const qkv_;

  // --- shared memory
  SharedMemory shared_;
  uint8_t* const keys_;          // [window] rows (SharedSlot)
  uint8_t* const values_;        // likewise
  float* const scores_;          // [heads][slots_]: scores, then exponentials
  uint8_t* const codes_;         // [heads][slots_]: codes of the weights, without sign
  const Digits query_;           // of all heads, as in a row of keys
  uint32_t* const is_negative_;  // [heads]: whether its codes are
};

}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const AttendLanes& p, const Work& work) {
  internal::LaneAttention(p, work).Run();
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ATTEND_LANES_H_
