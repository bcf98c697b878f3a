// One head of attention (attention.h): where its slots are in memory, its scores, weights and
// weighted sum, computed by a thread block. C++17.
//
// Half warps compute dot products (dots.h); for the weighted sum of codes a thread has a
// column of every n-th slot. Sums of codes are integers, exact in any order. Sums of floats and of
// exponentials follow rule 4 of docs/NUMERICS.md (sums.h).
#ifndef KINGLET_KERNELS_CUDA_ATTENTION_HEAD_H_
#define KINGLET_KERNELS_CUDA_ATTENTION_HEAD_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/dots.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/sums.h"
#include "kernels/functions.h"
#include "kernels/nine_bit_row.h"
#include "kernels/ring.h"

namespace kinglet::cuda {

// The position term of a score: q . row + constant, with the row of the slot's distance from the
// newest slot. The last row is for distance 0. Distances beyond the first row use the first row.
struct PositionRows {
  const float* rows = nullptr;  // [count, heads or 1, key_size]; null without positions
  // The rows are columns, [key_size, count], without heads, of keys below kShortSum: a thread
  // computes the term of a slot, so neighbouring threads read neighbouring floats.
  bool in_columns = false;
  const float* constants = nullptr;  // [count, heads], or null
  uint32_t count = 0;
  bool of_heads = false;  // each head has rows of its own
};

// Arguments of both nodes. Queries, keys and values are all floats or all 16-bit codes, but
// keys and values may be codes of 9 bits instead.
struct Attention {
  Place query;    // of head 0: q, and for windows the token's own k and v after q
  Place keys;     // of ring slot 0 and head 0; the next heads follow at key_stride, then slot 1's
  Place values;   // of ring slot 0 and head 0, like `keys` but at value_stride
  Place weights;  // [heads, window] of floats
  Place out;      // [heads, value_size] of floats
  // The key [heads, key_size] and value [heads, value_size] of slots that no token has filled. The
  // memory of these slots may have any contents. Where rings have codes of 9 bits: a row of zeros.
  // Null if these slots are not visible.
  const void* start = nullptr;
  PositionRows positions;
  // [heads, key_size]: the score of floats is score_weight . tanh(q + k). Null for q . k.
  const float* score_weight = nullptr;
  Rounding rounding;  // of attention weights to codes
  float query_scale, content_scale, value_scale;
  float scale;  // of scores
  uint32_t heads, key_size, value_size, window;
  uint32_t ring;                                    // slots, `window` or more
  uint32_t query_stride, key_stride, value_stride;  // of a head, in elements
  // How many codes of 9 bits a ring slot of keys has, and one of values (kernels/nine_bit_row.h). 0
  // means that their elements are those of the query. Parts of heads are multiples of 8 codes.
  uint32_t key_row, value_row;
  bool codes;
  bool of_source;    // slots are the rows of the source: nothing is stored, and all are visible
  bool masked;       // slots that no token has filled are not visible
  bool restarts;     // WindowAttention::restarts
  bool masks_token;  // WindowAttention::masked
  uint32_t masked_token;
  Place tokens;     // with masks_token: [window] of uint32
  bool fits_int32;  // every sum of codes fits 32 bits

  static constexpr uint32_t kValueColumns =
      64;  // columns of floats whose chains are kept at a time

  // Bytes of shared memory that Score takes.
  KINGLET_HOST_DEVICE uint64_t QueryBytes() const {
    return SharedMemory::Bytes<float>(key_size) + SharedMemory::Bytes<int16_t>(key_size);
  }
  // How many partial sums of a weighted sum of codes are in shared memory.
  KINGLET_HOST_DEVICE uint64_t PartialSums() const {
    return value_size > kBlockThreads ? value_size : kBlockThreads;
  }
  // Bytes of shared memory that Weigh takes.
  KINGLET_HOST_DEVICE uint64_t WeighBytes() const {
    const uint64_t sums =
        codes ? SharedMemory::Bytes<int16_t>(window) + SharedMemory::Bytes<int64_t>(PartialSums())
              : SharedMemory::Bytes<float>(SumChains(window) * kValueColumns);
    return SharedMemory::Bytes<float>(window) + SharedMemory::Bytes<float>(kLargestParts) +
           SharedMemory::Bytes<float>(BlockSumFloats(window)) + sums;
  }
};

// Block-wide: stores n codes as codes [first, first + n) of a row; both are multiples of 8.
KINGLET_HOST_DEVICE inline void StoreNineBits(const Block& block, const int16_t* codes, uint64_t n,
                                              const NineBitRow& layout, uint64_t first,
                                              uint8_t* row) {
  block.ForEach(NineBitRow::PartBytes(n), [&](uint64_t k) {
    const uint64_t at = layout.PartByteAt(first, n, k);
    row[at] = layout.Byte(at, [=](uint64_t i) { return codes[i - first]; });
  });
}
// Block-wide: stores the zeros after a row's codes, whose number is a multiple of 8.
KINGLET_HOST_DEVICE inline void PadNineBits(const Block& block, const NineBitRow& layout,
                                            uint8_t* row) {
  const uint64_t n = layout.Padded() - layout.count;
  if (n == 0) return;
  block.ForEach(NineBitRow::PartBytes(n),
                [&](uint64_t k) { row[layout.PartByteAt(layout.count, n, k)] = 0; });
}

// A head of a lane, and where its slots are in memory. Slots are window slots unless named ring
// slots. Elements of type T are floats or codes (Attention::codes).
struct AttentionHead {
  const Attention& p;
  const Work& work;
  const Lane& lane;
  uint32_t head;
  RingWindow window;
  uint32_t first;  // the first visible slot
  uint32_t count;  // slots

  KINGLET_HOST_DEVICE AttentionHead(const Attention& of, const Work& its_work, uint32_t lane_index,
                                    uint32_t its_head)
      : p(of),
        work(its_work),
        lane(its_work.lanes[lane_index]),
        head(its_head),
        // Row s of a source is in slot s, as in a window that the last slot has just filled.
        window(of.of_source ? of.window - 1 : lane.position, of.window, of.restarts, of.ring,
               of.of_source ? of.window - 1 : lane.Row()),
        first(of.masked ? window.FirstFilled() : 0),
        count(of.of_source ? static_cast<uint32_t>(lane.source_length) : of.window) {}

  KINGLET_HOST_DEVICE uint64_t RingHead(uint32_t s) const {
    return uint64_t{window.Slot(s)} * p.heads + head;
  }
  KINGLET_HOST_DEVICE bool HoldsStart(uint32_t s) const {
    return p.start != nullptr && s < window.FirstFilled();
  }
  template <class T>
  KINGLET_HOST_DEVICE const T* Query() const {
    return work.At<T>(lane, p.query) + uint64_t{head} * p.query_stride;
  }
  template <class T>
  KINGLET_HOST_DEVICE T* KeyInRing(uint32_t s) const {
    return work.At<T>(lane, p.keys) + RingHead(s) * p.key_stride;
  }
  template <class T>
  KINGLET_HOST_DEVICE T* ValueInRing(uint32_t s) const {
    return work.At<T>(lane, p.values) + RingHead(s) * p.value_stride;
  }
  KINGLET_HOST_DEVICE uint8_t* KeyRow(uint32_t s) const {
    return work.At<uint8_t>(lane, p.keys) + window.Slot(s) * NineBitRow{p.key_row}.Bytes();
  }
  KINGLET_HOST_DEVICE uint8_t* ValueRow(uint32_t s) const {
    return work.At<uint8_t>(lane, p.values) + window.Slot(s) * NineBitRow{p.value_row}.Bytes();
  }
  KINGLET_HOST_DEVICE const uint8_t* StartRow() const {
    return static_cast<const uint8_t*>(p.start);
  }
  // Of codes: code i of the head's key of slot s, and of its value.
  KINGLET_HOST_DEVICE int32_t KeyCode(uint32_t s, uint32_t i) const {
    if (p.key_row == 0) return Key<int16_t>(s)[i];
    const NineBitRow row{p.key_row};
    return row.Code(HoldsStart(s) ? StartRow() : KeyRow(s), uint64_t{head} * p.key_size + i);
  }
  KINGLET_HOST_DEVICE int32_t ValueCode(uint32_t s, uint32_t i) const {
    if (p.value_row == 0) return Value<int16_t>(s)[i];
    const NineBitRow row{p.value_row};
    return row.Code(HoldsStart(s) ? StartRow() : ValueRow(s), uint64_t{head} * p.value_size + i);
  }
  template <class T>
  KINGLET_HOST_DEVICE const T* Key(uint32_t s) const {
    if (HoldsStart(s)) return static_cast<const T*>(p.start) + uint64_t{head} * p.key_size;
    return KeyInRing<T>(s);
  }
  template <class T>
  KINGLET_HOST_DEVICE const T* Value(uint32_t s) const {
    if (!HoldsStart(s)) return ValueInRing<T>(s);
    return static_cast<const T*>(p.start) + uint64_t{p.heads} * p.key_size +
           uint64_t{head} * p.value_size;
  }
  KINGLET_HOST_DEVICE uint64_t PositionRow(uint32_t s) const {
    const uint32_t farthest = p.positions.count - 1;
    return farthest - Least(p.window - 1 - s, farthest);
  }
  KINGLET_HOST_DEVICE uint32_t* Tokens() const { return work.At<uint32_t>(lane, p.tokens); }
  KINGLET_HOST_DEVICE bool IsMasked(uint32_t s) const {
    if (!p.masks_token) return false;
    return (s == p.window - 1 ? lane.token : Tokens()[window.Slot(s)]) == p.masked_token;
  }
  KINGLET_HOST_DEVICE float* Weights() const {
    return work.At<float>(lane, p.weights) + uint64_t{head} * p.window;
  }
  KINGLET_HOST_DEVICE float* Out() const {
    return work.At<float>(lane, p.out) + uint64_t{head} * p.value_size;
  }
};

// kMaskedScore of kernels/attention_op.h, which is not C++17.
inline constexpr float kMaskedTokenScore = -1e30f;

namespace internal {

KINGLET_HOST_DEVICE inline float RealOf(float x, float) { return x; }
KINGLET_HOST_DEVICE inline float RealOf(int16_t code, float scale) {
  return static_cast<float>(code) * scale;
}

// Block-wide: stores the token's own key and value in the ring.
KINGLET_HOST_DEVICE inline void StoreOwn(const AttentionHead& of, const Block& block) {
  const Attention& p = of.p;
  const uint32_t newest = p.window - 1;
  WithElements(p.codes, [&](auto zero) {
    using T = decltype(zero);
    const T* const own = of.Query<T>() + p.key_size;
    block.ForEach(uint64_t{p.key_size} + p.value_size, [&](uint64_t i) {
      if (i < p.key_size) {
        if (p.key_row == 0) of.KeyInRing<T>(newest)[i] = own[i];
      } else if (p.value_row == 0) {
        of.ValueInRing<T>(newest)[i - p.key_size] = own[i];
      }
    });
  });
  const int16_t* const own_codes = of.Query<int16_t>();
  if (p.key_row != 0) {
    StoreNineBits(block, own_codes + p.key_size, p.key_size, {p.key_row},
                  uint64_t{of.head} * p.key_size, of.KeyRow(newest));
    if (of.head == 0) PadNineBits(block, {p.key_row}, of.KeyRow(newest));
  }
  if (p.value_row != 0) {
    StoreNineBits(block, own_codes + 2 * p.key_size, p.value_size, {p.value_row},
                  uint64_t{of.head} * p.value_size, of.ValueRow(newest));
    if (of.head == 0) PadNineBits(block, {p.value_row}, of.ValueRow(newest));
  }
}

// Block-wide: scores[s] of the visible slots s in [begin, end). The thread block that has the
// newest slot also stores the token's own key and value in the ring. Takes QueryBytes() of shared
// memory.
KINGLET_HOST_DEVICE inline void Score(const AttentionHead& of, const Block& block, uint32_t begin,
                                      uint32_t end, SharedMemory& shared, float* scores) {
  const Attention& p = of.p;
  float* const q = shared.Take<float>(p.key_size);
  int16_t* const q_codes = shared.Take<int16_t>(p.key_size);
  const bool stores = !p.of_source && end == p.window;
  WithElements(p.codes, [&](auto zero) {
    using T = decltype(zero);
    const T* const own = of.Query<T>();
    block.ForEach(p.key_size, [&](uint64_t i) {
      q[i] = RealOf(own[i], p.query_scale);
      if (p.codes) q_codes[i] = static_cast<int16_t>(own[i]);
    });
  });
  if (stores) StoreOwn(of, block);
  // Every head's thread block gets the newest slot's token from the lane; the first head's thread
  // block stores it in the ring.
  if (stores && p.masks_token && of.head == 0) {
    block.ForEach(1, [&](uint64_t) { of.Tokens()[of.window.newest] = of.lane.token; });
  }
  if (begin < of.first) begin = of.first;
  if (begin >= end) return;
  const uint32_t count = end - begin;
  float* const to = scores + begin;
  const auto slot = [begin](uint64_t i) { return begin + static_cast<uint32_t>(i); };
  const PositionRows& positions = p.positions;
  const bool has_positions = positions.rows != nullptr;
  if (positions.in_columns) {
    block.ForEach(count, [&](uint64_t i) {
      const float* const column = positions.rows + of.PositionRow(slot(i));
      to[i] = ChainSum(p.key_size, 0, [&](float sum, uint64_t k) {
        return fmaf(q[k], column[k * positions.count], sum);
      });
    });
  } else if (has_positions) {
    const auto row_of = [&](uint64_t i) {
      const uint64_t row = of.PositionRow(slot(i));
      return positions.rows + (positions.of_heads ? row * p.heads + of.head : row) * p.key_size;
    };
    BlockRowSums(
        block, count, p.key_size,
        [&](float sum, uint64_t i, uint64_t k) { return fmaf(q[k], row_of(i)[k], sum); },
        [&](uint64_t i, float dot) {
          if (positions.constants != nullptr) {
            dot += positions.constants[of.PositionRow(slot(i)) * p.heads + of.head];
          }
          to[i] = dot;
        });
  }
  const auto finish = [&](uint64_t i, float content) {
    const float score = (content + (has_positions ? to[i] : 0.0f)) * p.scale;
    to[i] = of.IsMasked(slot(i)) ? kMaskedTokenScore : score;
  };
  if (!p.codes) {
    BlockRowSums(
        block, count, p.key_size,
        [&](float sum, uint64_t i, uint64_t k) {
          const float key = of.Key<float>(slot(i))[k];
          if (p.score_weight == nullptr) return fmaf(q[k], key, sum);
          return fmaf(p.score_weight[uint64_t{of.head} * p.key_size + k], Tanh(q[k] + key), sum);
        },
        finish);
  } else {
    BlockRowIntegers(
        block, count, p.key_size,
        [&](uint64_t i, uint64_t k) {
          return int32_t{q_codes[k]} * of.KeyCode(slot(i), static_cast<uint32_t>(k));
        },
        [&](uint64_t i, int64_t sum) { finish(i, static_cast<float>(sum) * p.content_scale); });
  }
}

// Block-wide: out[begin, begin + columns) = the sum of codes[s] * value over the visible slots.
// Each thread has a column of every `parts`-th slot. `sums`: shared memory of p.PartialSums().
KINGLET_HOST_DEVICE inline void WeighCodes(const AttentionHead& of, const Block& block,
                                           uint32_t begin, uint32_t columns, const int16_t* codes,
                                           int64_t* sums) {
  // Neighbouring threads read neighbouring columns.
  const uint32_t most = block.threads() / columns;
  const uint32_t parts = most == 0 ? 1 : most;
  block.ForEach(uint64_t{columns} * parts, [&](uint64_t i) {
    // A GPU takes ten times as long for a 64-bit division.
    const auto item = static_cast<uint32_t>(i);
    const uint32_t column = begin + item % columns;
    int64_t sum = 0;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 4
#endif
    for (uint32_t s = of.first + item / columns; s < of.count; s += parts) {
      sum += codes[s] * of.ValueCode(s, column);
    }
    sums[item] = sum;
  });
  block.ForEach(columns, [&](uint64_t column) {
    int64_t total = 0;
    for (uint32_t part = 0; part < parts; ++part) total += sums[part * columns + column];
    of.Out()[begin + column] = static_cast<float>(total) * of.p.value_scale;
  });
}

// Block-wide: out[begin, begin + columns) for floats, by rule 4 over the complete window; invisible
// slots take part with weight 0. Each thread computes a chain of a column. `chains`: shared memory
// of SumChains(count) * kValueColumns floats.
KINGLET_HOST_DEVICE inline void WeighFloats(const AttentionHead& of, const Block& block,
                                            uint32_t begin, uint32_t columns, const float* weights,
                                            float* chains) {
  const uint64_t count = SumChains(of.count);
  for (uint32_t done = 0; done < columns; done += Attention::kValueColumns) {
    const uint32_t n = Least(columns - done, uint32_t{Attention::kValueColumns});
    block.ForEach(count * n, [&](uint64_t i) {
      const auto item = static_cast<uint32_t>(i);
      const uint32_t column = begin + done + item % n;
      chains[item] = ChainSum(of.count, item / n, [&](float sum, uint64_t s) {
        const auto at = static_cast<uint32_t>(s);
        return fmaf(weights[s], at < of.first ? 0.0f : of.Value<float>(at)[column], sum);
      });
    });
    block.ForEach(n, [&](uint64_t column) {
      float total = chains[column];
      if (count > 1) {
        RunningFold tiles;
        for (uint64_t chain = 0; chain < count; chain += kSumChains) {
          float of_tile[kSumChains];
          for (uint32_t j = 0; j < kSumChains; ++j) of_tile[j] = chains[(chain + j) * n + column];
          tiles.Push(FoldChains(of_tile));
        }
        total = tiles.Total();
      }
      of.Out()[begin + done + column] = total;
    });
  }
}

// Block-wide: out[begin, begin + columns) from the scores of all visible slots; with `writes` the
// head's weights, too. Takes WeighBytes() of shared memory.
KINGLET_HOST_DEVICE inline void Weigh(const AttentionHead& of, const Block& block,
                                      const float* scores, uint32_t begin, uint32_t columns,
                                      bool writes, SharedMemory& shared) {
  const Attention& p = of.p;
  float* const weights = shared.Take<float>(p.window);
  float* const parts = shared.Take<float>(kLargestParts);
  float* const chains = shared.Take<float>(BlockSumFloats(p.window));
  const uint32_t first = of.first, count = of.count;
  const float largest = BlockLargest(block, count - first, true, parts,
                                     [&](uint64_t i) { return scores[first + i]; });
  block.ForEach(count,
                [&](uint64_t s) { weights[s] = s < first ? 0.0f : Exp(scores[s] - largest); });
  const float total =
      BlockSum(block, count, chains, [&](float sum, uint64_t s) { return sum + weights[s]; });
  float* const kept = of.Weights();
  int16_t* const codes = shared.Take<int16_t>(p.codes ? p.window : 0);
  block.ForEach(count, [&](uint64_t s) {
    weights[s] /= total;
    if (writes) kept[s] = weights[s];
    if (p.codes) codes[s] = p.rounding(weights[s]);
  });
  if (!p.codes) {
    float* const sums = shared.Take<float>(SumChains(p.window) * Attention::kValueColumns);
    WeighFloats(of, block, begin, columns, weights, sums);
  } else {
    WeighCodes(of, block, begin, columns, codes, shared.Take<int64_t>(p.PartialSums()));
  }
}

}  // namespace internal

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ATTENTION_HEAD_H_
