// Attention of tokens where keys and values are rings of 9-bit codes: a thread block has all heads
// of a lane, or of neighbouring tokens of a text (text.h), whose windows overlap. C++17.
//
// Products are tiles of bytes (byte_product.h), whose 8 columns are tokens. For the scores of a
// head a tile has 16 rows of its keys, for the weighted sums 16 columns of its values. Results are
// those of attention.h, bit for bit.
#ifndef KINGLET_KERNELS_CUDA_ATTEND_TOKENS_H_
#define KINGLET_KERNELS_CUDA_ATTEND_TOKENS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/attention_head.h"
#include "kernels/cuda/nine_bit_tiles.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/short_products.h"

namespace kinglet::cuda {

// The attention's weights are not written.
struct AttendTokens {
  static constexpr int32_t kLargestWeight = 255;  // code
  Attention attention;
  // Of a work item. 1: a lane, which also stores its key and value. Up to kTileStreams: successive
  // tokens, of which each has stored its own.
  uint32_t tokens;

  // Whether the node can run this attention, whose weights' largest code is given.
  static bool Takes(const Attention& p, int64_t largest_weight) {
    return p.codes && p.key_row != 0 && p.value_row != 0 && p.positions.rows != nullptr &&
           !p.positions.of_heads && p.positions.constants == nullptr &&
           p.positions.count == p.window && !p.of_source && !p.masks_token && p.fits_int32 &&
           p.window <= kBlockThreads && largest_weight <= kLargestWeight && p.key_size <= kSumTile;
  }
  // Rows of keys that the tokens of a work item see together.
  KINGLET_HOST_DEVICE uint32_t Rows() const { return attention.window + tokens - 1; }
  KINGLET_HOST_DEVICE uint32_t PaddedRows() const {
    return DivideUp(Rows(), uint32_t{kTileDepth}) * kTileDepth;
  }
  KINGLET_HOST_DEVICE uint64_t RingBytes(uint32_t row) const {
    return SharedMemory::Bytes<uint8_t>(Rows() * NineBitRow{row}.Bytes());
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return DivideUp(lanes, tokens);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    const uint64_t vectors = uint64_t{attention.heads} * tokens;  // scores of a head and a token
    return RingBytes(attention.key_row) + RingBytes(attention.value_row) +
           SharedMemory::Bytes<float>(vectors * PaddedRows()) +
           SharedMemory::Bytes<uint8_t>(vectors * PaddedRows()) +
           2 * SharedMemory::Bytes<uint8_t>(tokens * NineBitRow{attention.key_row}.Padded()) +
           SharedMemory::Bytes<uint32_t>(vectors);
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

// `count` tokens, from lane `first` on. Row r is the key or the value that token i sees in window
// slot r - i.
class TokenAttention {
 public:
  KINGLET_HOST_DEVICE TokenAttention(const AttendTokens& node, const Work& work, uint32_t first,
                                     uint32_t count)
      : p_(node.attention),
        stores_(node.tokens == 1),
        stride_(node.tokens),
        padded_(node.PaddedRows()),
        work_(work),
        block_(work.block),
        lanes_(work.lanes + first),
        count_(count),
        rows_(p_.window + count - 1),
        window_(lanes_->position, p_.window, p_.restarts, p_.ring, lanes_->Row()),
        query_row_(static_cast<uint32_t>(NineBitRow{p_.key_row}.Padded())),
        shared_(work.block),
        keys_(shared_.Take<uint8_t>(node.Rows() * NineBitRow{p_.key_row}.Bytes())),
        values_(shared_.Take<uint8_t>(node.Rows() * NineBitRow{p_.value_row}.Bytes())),
        scores_(shared_.Take<float>(uint64_t{p_.heads} * stride_ * padded_)),
        codes_(shared_.Take<uint8_t>(uint64_t{p_.heads} * stride_ * padded_)),
        query_(Digits::Take(shared_, uint64_t{stride_} * query_row_)),
        is_negative_(shared_.Take<uint32_t>(uint64_t{p_.heads} * stride_)) {}

  KINGLET_HOST_DEVICE void Run() const {
    // Code that runs twice is half the code.
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
    for (const bool of_keys : {true, false}) {
      Load(of_keys ? p_.keys : p_.values, {of_keys ? p_.key_row : p_.value_row},
           of_keys ? p_.key_size : p_.value_size, of_keys ? p_.key_size : 2 * p_.key_size,
           of_keys ? keys_ : values_);
    }
    block_.ForEach(uint64_t{count_} * query_row_, [&](uint64_t i) {
      const auto code = static_cast<uint32_t>(i);
      const uint32_t at = code % query_row_;
      query_.Set(code, at < p_.key_row
                           ? QueryCode(code / query_row_, at / p_.key_size, at % p_.key_size)
                           : 0);
    });
    Score();
    Weigh();
    AddUp();
  }

 private:
  KINGLET_HOST_DEVICE int16_t QueryCode(uint32_t token, uint32_t head, uint32_t i) const {
    return work_.At<int16_t>(lanes_[token], p_.query)[head * p_.query_stride + i];
  }
  // Block-wide: copies rows of a ring to shared memory, with zeros in those that no token has
  // filled. A lane's own row, whose codes are `own` elements after a head's query, is stored in
  // both.
  KINGLET_HOST_DEVICE void Load(const Place& ring, const NineBitRow& row, uint32_t size,
                                uint32_t own, uint8_t* to) const {
    uint8_t* const all = work_.At<uint8_t>(*lanes_, ring);
    CopyRows(block_, row, all, p_.ring, window_.Oldest(), window_.FirstFilled(), rows_, to);
    if (!stores_) return;
    const uint64_t newest = uint64_t{rows_ - 1} * row.Bytes();
    uint8_t* const kept = all + window_.newest * row.Bytes();
    block_.ForEach(row.Bytes(), [&](uint64_t at) {
      const uint8_t byte = row.Byte(at, [&](uint64_t i) {
        const auto code = static_cast<uint32_t>(i);
        return QueryCode(0, code / size, own + code % size);
      });
      to[newest + at] = kept[at] = byte;
    });
  }
  // Row r, or the last one.
  KINGLET_HOST_DEVICE const uint8_t* RowOf(const uint8_t* rows, const NineBitRow& layout,
                                           uint32_t r) const {
    return rows + Least(r, rows_ - 1) * layout.Bytes();
  }
  // The first window slot that the token's stream has filled. Streams that restart have one token
  // here.
  KINGLET_HOST_DEVICE uint32_t FirstFilled(uint32_t token) const {
    if (token == 0) return window_.FirstFilled();
    const uint64_t filled = lanes_[token].position + 1;
    return filled < p_.window ? p_.window - static_cast<uint32_t>(filled) : 0;
  }
  // Where the scores of a head and a token begin, in rows.
  KINGLET_HOST_DEVICE uint32_t VectorAt(uint32_t head, uint32_t token) const {
    return (head * stride_ + token) * padded_;
  }
  KINGLET_HOST_DEVICE float PositionTerm(uint32_t token, uint32_t head, uint32_t s) const {
    const float* const rows = p_.positions.rows;
    return ThreadTileSum(p_.key_size, [&](float sum, uint64_t k) {
      const float q =
          static_cast<float>(QueryCode(token, head, static_cast<uint32_t>(k))) * p_.query_scale;
      return fmaf(q, p_.positions.in_columns ? rows[k * p_.window + s] : rows[s * p_.key_size + k],
                  sum);
    });
  }

  // Block-wide: the scores of all tokens. A warp has 16 rows of a head.
  KINGLET_HOST_DEVICE void Score() const {
    const NineBitRow row{p_.key_row};
    const uint32_t tiles = DivideUp(rows_, uint32_t{kTileRows});
    block_.EachWarp([&](const Warp& warp) {
      for (uint32_t task = warp.index(); task < p_.heads * tiles; task += block_.warps()) {
        const uint32_t head = task / tiles, first = task % tiles * kTileRows;
        PerThread<PlaneSums> sums{};
        for (uint32_t k = 0; k < p_.key_size; k += kTileDepth) {
          PerThread<TileA> low, signs;
          PerThread<TileB> low_x, high_x;
          warp.EachThread([&](uint32_t thread, uint32_t reg) {
            const uint32_t column = head * p_.key_size + k;
            LoadNineBitPart(
                row, column, p_.key_size - k, thread,
                [&](uint32_t i) { return RowOf(keys_, row, first + i); }, low[reg], signs[reg]);
            for (uint32_t part = 0; part < 2; ++part) {
              const uint32_t at = 16 * part + thread % 4 * 4, token = thread / 4;
              const bool has = token < count_ && k + at < p_.key_size;
              const uint32_t from = token * query_row_ + column + at;
              low_x[reg].registers[part] = has ? LoadAligned<uint32_t>(query_.low + from) : 0;
              high_x[reg].registers[part] = has ? LoadAligned<uint32_t>(query_.high + from) : 0;
            }
          });
          AddPlaneProducts<false, false>(warp, low, signs, low_x, high_x, sums);
        }
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
          for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t token = TileStream(thread, i);
            if (token >= count_) continue;
            scores_[VectorAt(head, token) + first + TileRow(thread, i)] =
                static_cast<float>(SumModulo(sums[reg], i)) * p_.content_scale;
          }
        });
        warp.Barrier();
        // Neighbouring threads have neighbouring slots, and so neighbouring floats of a column.
        warp.EachThread([&](uint32_t thread, uint32_t) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
          for (uint32_t i = thread; i < count_ * kTileRows; i += kWarpThreads) {
            const uint32_t token = i / kTileRows, r = first + i % kTileRows;
            if (r < token || r - token >= p_.window) continue;
            float& score = scores_[VectorAt(head, token) + r];
            const float content = r - token < FirstFilled(token) ? 0.0f : score;
            score = (content + PositionTerm(token, head, r - token)) * p_.scale;
          }
        });
      }
    });
  }

  // Block-wide: codes of the weights of all rows. A warp has a head of a token.
  KINGLET_HOST_DEVICE void Weigh() const {
    block_.EachWarp([&](const Warp& warp) {
      for (uint32_t task = warp.index(); task < p_.heads * count_; task += block_.warps()) {
        const uint32_t head = task / count_, token = task % count_;
        const uint32_t filled = FirstFilled(token), vector = VectorAt(head, token);
        const uint32_t first = p_.masked ? filled : 0;   // that the token sees
        float* const scores = scores_ + vector + token;  // by window slots
        PerThread<float> largest;
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          largest[reg] = -INFINITY;
          for (uint32_t s = thread; s < p_.window; s += kWarpThreads) {
            if (s >= first) largest[reg] = LargerNumber(largest[reg], scores[s]);
          }
        });
        warp.Reduce(largest, kWarpThreads / 2, 1, LargerNumber);
        // As BlockLargest: a NaN counts only if it is the first number.
        const float first_score = scores[first];
        warp.Barrier();
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          const float most = first_score != first_score ? first_score : largest[reg];
          for (uint32_t s = thread; s < p_.window; s += kWarpThreads) {
            scores[s] = s < first ? 0.0f : Exp(scores[s] - most);
          }
        });
        warp.Barrier();
        const PerThread<float> total =
            WarpSum(warp, p_.window,
                    [&](float sum, uint64_t s, uint32_t, uint32_t) { return sum + scores[s]; });
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          // Of a sum that is NaN every weight is, and has the least code.
          if (thread == 0) is_negative_[head * stride_ + token] = total[reg] != total[reg] ? 1 : 0;
          for (uint32_t r = thread; r < padded_; r += kWarpThreads) {
            // Values of unfilled slots are zeros.
            const bool counts = r >= token + filled && r - token < p_.window;
            const int32_t code = counts ? p_.rounding(scores_[vector + r] / total[reg]) : 0;
            codes_[vector + r] = static_cast<uint8_t>(code < 0 ? -code : code);
          }
        });
      }
    });
  }

  // Block-wide: the weighted sums. A warp has 32 columns of a head's values.
  KINGLET_HOST_DEVICE void AddUp() const {
    constexpr uint32_t kColumns = 32;
    const NineBitRow row{p_.value_row};
    const uint32_t parts = DivideUp(p_.value_size, kColumns);
    block_.EachWarp([&](const Warp& warp) {
      for (uint32_t task = warp.index(); task < p_.heads * parts; task += block_.warps()) {
        const uint32_t head = task / parts, begin = task % parts * kColumns;
        const uint32_t first = head * p_.value_size + begin, columns = p_.value_size - begin;
        PerThread<TileD> low[2]{}, signs[2]{};  // of columns 4 g, 4 g + 1, and of the next two
        for (uint32_t r = 0; r < padded_; r += kTileDepth) {
          PerThread<TileA> a[2], b[2];
          PerThread<TileB> weights;
          warp.EachThread([&](uint32_t thread, uint32_t reg) {
            const uint32_t g = thread / 4, t = thread % 4;
            const uint32_t column = first + 4 * g;
            const bool has = 4 * g < columns;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
            for (uint32_t half = 0; half < 2; ++half) {
              uint32_t bytes[4], bits[4];
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
              for (uint32_t j = 0; j < 4; ++j) {
                const uint8_t* const value = RowOf(values_, row, r + 16 * half + 4 * t + j);
                bytes[j] = has ? LoadAligned<uint32_t>(value + column) : 0;
                bits[j] =
                    has ? SignBytes(uint32_t{value[row.SignByte(column)]} >> (column % 8)) : 0;
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
              const uint8_t* const codes = codes_ + VectorAt(head, g) + r + 16 * half + 4 * t;
              weights[reg].registers[half] = g < count_ ? LoadAligned<uint32_t>(codes) : 0;
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
            const uint32_t column = TileRow(thread, i % 4) % 8 * 4 + i / 2;
            const uint32_t token = TileStream(thread, i % 4);
            if (column >= columns || token >= count_) continue;
            const int32_t sum = low[i / 4][reg].sums[i % 4] + 256 * signs[i / 4][reg].sums[i % 4];
            const bool is_negative = is_negative_[head * stride_ + token] != 0;
            work_.At<float>(lanes_[token], p_.out)[first + column] =
                static_cast<float>(is_negative ? -sum : sum) * p_.value_scale;
          }
        });
      }
    });
  }

  const Attention& p_;
  const bool stores_;      // the token's own row
  const uint32_t stride_;  // AttendTokens::tokens
  const uint32_t padded_;  // rows of full tiles
  const Work& work_;
  const Block& block_;
  const Lane* const lanes_;
  const uint32_t count_, rows_;
  const RingWindow window_;  // of the first token
  const uint32_t query_row_;

  // --- shared memory
  SharedMemory shared_;
  uint8_t* const keys_;          // [rows_] rows
  uint8_t* const values_;        // likewise
  float* const scores_;          // [heads, stride_, padded_]: scores, then exponentials
  uint8_t* const codes_;         // likewise: codes of the weights, without sign
  const Digits query_;           // [count_, query_row_]
  uint32_t* const is_negative_;  // [heads, stride_]: whether its codes are
};

}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const AttendTokens& p, const Work& work) {
  const uint32_t first = work.item * p.tokens;
  internal::TokenAttention(p, work, first, Least(p.tokens, work.lane_count - first)).Run();
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ATTEND_TOKENS_H_
