// Attention of one token to the slots of a ring, or to the rows of an encoded source
// (kernels/op.h, WindowAttention and SourceAttention). C++17.
//
// A head of a short window is one unit: its keys and values are read once, its weights live in
// shared memory. A long window's head would keep one block busy for as long as it takes one
// multiprocessor to read hundreds of kilobytes, so it is two steps, each of several units: scores
// by parts of the window, then sums of values by parts of a value, each of which makes the weights
// it needs once more.
#ifndef KINGLET_KERNELS_CUDA_ATTENTION_H_
#define KINGLET_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/dots.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// What a score has of positions: q . row + constant, for the row of the slot's distance. The rows
// end with that of distance 0; larger distances than there are rows count as the largest.
struct PositionRows {
  const float* rows = nullptr;       // [count, heads or 1, key_size]; null: none
  const float* constants = nullptr;  // [count, heads], or null
  uint32_t count = 0;
  bool of_heads = false;
};

// Elements are reals, or codes of 16 bits.
struct Attention {
  Place query;    // a head's begins with q; of a window its k and v follow
  Place keys;     // of slot 0 and head 0,
  Place values;   // other heads and slots being `key_stride` and `value_stride` a head further on
  Place weights;  // [heads, window] of reals
  Place out;      // [heads, value_size] of reals
  const void* start = nullptr;  // elements [heads, key_size], then [heads, value_size]; or null:
                                // what slots hold that no token has filled
  PositionRows positions;
  Rounding rounding;  // of weights to codes
  float query_step, content_scale, value_scale;
  float scale;  // key_size^-1/2
  uint32_t heads, key_size, value_size, window;
  uint32_t query_stride, key_stride, value_stride;  // of a head, in elements
  bool codes;
  bool of_source;  // slots are the rows of the source: nothing is stored, all of them are seen
  bool masked;     // slots that no token has filled are not seen
  bool restarts;
  bool wide_scores, wide_values;        // sums that may need more than 32 bits
  bool keys_together, values_together;  // what lies together is aligned to kCodesTogether

  // The sum of codes of one window slot's weight and value goes on in so many partial sums.
  static constexpr uint32_t kValueThreads = 256;
  static constexpr uint32_t kValueColumns = 64;  // of reals, whose chains are in memory at a time

  KINGLET_HOST_DEVICE uint64_t QueryBytes() const {
    return SharedMemory::Bytes<float>(key_size) + SharedMemory::Bytes<int16_t>(key_size);
  }
  KINGLET_HOST_DEVICE uint64_t PartialSums() const {
    const uint32_t least = kValueThreads * kCodesTogether;
    return value_size > least ? value_size : least;
  }
  KINGLET_HOST_DEVICE uint64_t WeighBytes() const {
    const uint64_t sums =
        codes ? SharedMemory::Bytes<int16_t>(window) + SharedMemory::Bytes<int64_t>(PartialSums())
              : SharedMemory::Bytes<float>(SumChains(window) * kValueColumns);
    return SharedMemory::Bytes<float>(kLargestParts) +
           SharedMemory::Bytes<float>(BlockSumFloats(window)) + sums;
  }
};

// A head of a lane, and where its slots lie.
template <class T>
struct AttentionHead {
  const Attention& p;
  const Work& work;
  const Lane& lane;
  uint32_t head;
  uint32_t oldest;  // ring slot of window slot 0
  uint32_t filled;  // the first window slot that a token has filled
  uint32_t first;   // the first that is seen
  uint32_t count;   // window slots

  KINGLET_HOST_DEVICE AttentionHead(const Attention& of, const Work& its_work, uint32_t lane_index,
                                    uint32_t its_head)
      : p(of), work(its_work), lane(its_work.lanes[lane_index]), head(its_head) {
    oldest = filled = first = 0;
    count = of.window;
    if (of.of_source) {
      count = static_cast<uint32_t>(lane.source_length);
      return;
    }
    const auto place = static_cast<uint32_t>(lane.position % of.window);
    oldest = place + 1 == of.window ? 0 : place + 1;
    const bool in_first_round = of.restarts || lane.position < of.window;
    filled = in_first_round ? of.window - 1 - place : 0;
    if (of.masked) first = filled;
  }

  KINGLET_HOST_DEVICE uint32_t RingSlot(uint32_t s) const {
    const uint32_t slot = oldest + s;
    return slot < p.window ? slot : slot - p.window;
  }
  KINGLET_HOST_DEVICE uint64_t RingHead(uint32_t s) const {
    return uint64_t{RingSlot(s)} * p.heads + head;
  }
  KINGLET_HOST_DEVICE bool HoldsStart(uint32_t s) const { return p.start != nullptr && s < filled; }
  KINGLET_HOST_DEVICE const T* Query() const {
    return work.At<T>(lane, p.query) + uint64_t{head} * p.query_stride;
  }
  KINGLET_HOST_DEVICE T* KeyInRing(uint32_t s) const {
    return work.At<T>(lane, p.keys) + RingHead(s) * p.key_stride;
  }
  KINGLET_HOST_DEVICE T* ValueInRing(uint32_t s) const {
    return work.At<T>(lane, p.values) + RingHead(s) * p.value_stride;
  }
  KINGLET_HOST_DEVICE const T* Key(uint32_t s) const {
    if (HoldsStart(s)) return static_cast<const T*>(p.start) + uint64_t{head} * p.key_size;
    return KeyInRing(s);
  }
  KINGLET_HOST_DEVICE const T* Value(uint32_t s) const {
    if (!HoldsStart(s)) return ValueInRing(s);
    return static_cast<const T*>(p.start) + uint64_t{p.heads} * p.key_size +
           uint64_t{head} * p.value_size;
  }
  KINGLET_HOST_DEVICE uint64_t PositionRow(uint32_t s) const {
    const uint32_t distance = p.window - 1 - s;
    return p.positions.count - 1 -
           (distance < p.positions.count ? distance : p.positions.count - 1);
  }
  KINGLET_HOST_DEVICE float* Weights() const {
    return work.At<float>(lane, p.weights) + uint64_t{head} * p.window;
  }
  KINGLET_HOST_DEVICE float* Out() const {
    return work.At<float>(lane, p.out) + uint64_t{head} * p.value_size;
  }
};

namespace internal {

KINGLET_HOST_DEVICE inline float RealOf(float x, float) { return x; }
KINGLET_HOST_DEVICE inline float RealOf(int16_t code, float step) {
  return static_cast<float>(code) * step;
}

// scores[s] of window slots s in [begin, end) that are seen; those of other slots are left alone.
// The block that has the newest slot stores the token's own key and value. Takes QueryBytes() of
// shared memory.
template <class T>
KINGLET_HOST_DEVICE void Score(const AttentionHead<T>& of, uint32_t begin, uint32_t end,
                               SharedMemory& shared, float* scores) {
  const Attention& p = of.p;
  const Block& block = of.work.block;
  float* const q = shared.Take<float>(p.key_size);
  int16_t* const q_codes = shared.Take<int16_t>(p.key_size);
  const T* const own = of.Query();
  const bool stores = !p.of_source && end == p.window;
  block.ForEach(stores ? uint64_t{2} * p.key_size + p.value_size : p.key_size, [&](uint64_t i) {
    const T element = own[i];
    if (i < p.key_size) {
      q[i] = RealOf(element, p.query_step);
      if (p.codes) q_codes[i] = static_cast<int16_t>(element);
    } else if (i < 2 * p.key_size) {
      of.KeyInRing(p.window - 1)[i - p.key_size] = element;
    } else {
      of.ValueInRing(p.window - 1)[i - 2 * p.key_size] = element;
    }
  });
  if (begin < of.first) begin = of.first;
  if (begin >= end) return;
  const uint32_t count = end - begin;
  float* const to = scores + begin;
  const auto slot = [begin](uint64_t i) { return begin + static_cast<uint32_t>(i); };
  const PositionRows& positions = p.positions;
  const bool has_positions = positions.rows != nullptr;
  if (has_positions) {
    RealDots(
        block, count, p.key_size, q,
        [&](uint64_t i) {
          const uint64_t row = of.PositionRow(slot(i));
          return positions.rows + (positions.of_heads ? row * p.heads + of.head : row) * p.key_size;
        },
        [&](uint64_t i, float dot) {
          if (positions.constants != nullptr) {
            dot += positions.constants[of.PositionRow(slot(i)) * p.heads + of.head];
          }
          to[i] = dot;
        });
  }
  const auto finish = [&](uint64_t i, float content) {
    to[i] = (content + (has_positions ? to[i] : 0.0f)) * p.scale;
  };
  const auto key = [&](uint64_t i) { return of.Key(slot(i)); };
  if constexpr (std::is_same_v<T, float>) {
    RealDots(block, count, p.key_size, q, key, finish);
  } else {
    const auto scaled = [&](uint64_t i, auto sum) {
      finish(i, static_cast<float>(sum) * p.content_scale);
    };
    if (p.wide_scores) {
      CodeDots<int64_t>(block, count, p.key_size, p.keys_together, q_codes, key, scaled);
    } else {
      CodeDots<int32_t>(block, count, p.key_size, p.keys_together, q_codes, key, scaled);
    }
  }
}

// out[begin, begin + columns) = sum of code * value over the slots that are seen. Partial sums of
// the slots are those of p.PartialSums().
template <class Sum, uint32_t kCount>
KINGLET_HOST_DEVICE void WeighCodes(const AttentionHead<int16_t>& of, uint32_t begin,
                                    uint32_t columns, const int16_t* codes, Sum* sums) {
  const Block& block = of.work.block;
  // A thread for kCount columns of every so many-th slot: neighbours read neighbouring columns.
  const uint32_t groups = (columns + kCount - 1) / kCount;
  const uint32_t most = Attention::kValueThreads / groups;
  const uint32_t parts = most == 0 ? 1 : most;
  block.ForEach(uint64_t{groups} * parts, [&](uint64_t i) {
    // Divisions of 64 bits take a device ten times as long.
    const auto item = static_cast<uint32_t>(i);
    const uint32_t column = item % groups * kCount, part = item / groups;
    Sum own[kCount]{};
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 4
#endif
    for (uint32_t s = of.first + part; s < of.count; s += parts) {
      const auto value = Codes<kCount>::Load(of.Value(s) + begin + column);
      for (uint32_t c = 0; c < kCount; ++c) own[c] += static_cast<Sum>(codes[s]) * value.codes[c];
    }
    for (uint32_t c = 0; c < kCount; ++c) sums[uint64_t{part} * columns + column + c] = own[c];
  });
  block.ForEach(columns, [&](uint64_t column) {
    Sum total = 0;
    for (uint32_t part = 0; part < parts; ++part) total += sums[part * columns + column];
    of.Out()[begin + column] = static_cast<float>(total) * of.p.value_scale;
  });
}

// The same of reals by rule 4 over the whole window. `chains` is of SumChains(count) *
// kValueColumns reals.
KINGLET_HOST_DEVICE inline void WeighReals(const AttentionHead<float>& of, uint32_t begin,
                                           uint32_t columns, const float* weights, float* chains) {
  const Block& block = of.work.block;
  const uint64_t count = SumChains(of.count);
  for (uint32_t done = 0; done < columns; done += Attention::kValueColumns) {
    const uint32_t left = columns - done;
    const uint32_t n = left < Attention::kValueColumns ? left : Attention::kValueColumns;
    block.ForEach(count * n, [&](uint64_t i) {
      const auto item = static_cast<uint32_t>(i);
      const uint32_t column = begin + done + item % n;
      chains[item] = ChainSum(of.count, item / n, [&](float sum, uint64_t s) {
        const auto at = static_cast<uint32_t>(s);
        return fmaf(weights[s], at < of.first ? 0.0f : of.Value(at)[column], sum);
      });
    });
    block.ForEach(n, [&](uint64_t column) {
      float total = chains[column];
      if (count > 1) {
        RunningFold blocks;
        for (uint64_t chain = 0; chain < count; chain += kSumChains) {
          float of_block[kSumChains];
          for (uint32_t j = 0; j < kSumChains; ++j) of_block[j] = chains[(chain + j) * n + column];
          blocks.Push(FoldChains(of_block));
        }
        total = blocks.Total();
      }
      of.Out()[begin + done + column] = total;
    });
  }
}

// out[begin, begin + columns) from the scores of all slots that are seen; `writes`: the head's
// weights too. `weights` is shared memory for the window and may be `scores`; takes WeighBytes() of
// it besides.
template <class T>
KINGLET_HOST_DEVICE void Weigh(const AttentionHead<T>& of, const float* scores, float* weights,
                               uint32_t begin, uint32_t columns, bool writes,
                               SharedMemory& shared) {
  const Attention& p = of.p;
  const Block& block = of.work.block;
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
  if constexpr (std::is_same_v<T, float>) {
    float* const sums = shared.Take<float>(SumChains(p.window) * Attention::kValueColumns);
    WeighReals(of, begin, columns, weights, sums);
  } else {
    int64_t* const sums = shared.Take<int64_t>(p.PartialSums());
    int32_t* const narrow = reinterpret_cast<int32_t*>(sums);
    if (p.wide_values && p.values_together) {
      WeighCodes<int64_t, kCodesTogether>(of, begin, columns, codes, sums);
    } else if (p.wide_values) {
      WeighCodes<int64_t, 1>(of, begin, columns, codes, sums);
    } else if (p.values_together) {
      WeighCodes<int32_t, kCodesTogether>(of, begin, columns, codes, narrow);
    } else {
      WeighCodes<int32_t, 1>(of, begin, columns, codes, narrow);
    }
  }
}

}  // namespace internal

// All of it. Each unit is a head of a lane.
struct AttendHead {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Attention attention;

  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const {
    return lanes * attention.heads;
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return attention.QueryBytes() + SharedMemory::Bytes<float>(attention.window) +
           attention.WeighBytes();
  }
};

namespace internal {
template <class T>
KINGLET_HOST_DEVICE void Attend(const Attention& p, const Work& work) {
  const LaneUnit unit(work, p.heads);
  const AttentionHead<T> of(p, work, unit.lane, unit.part);
  SharedMemory shared(work.block);
  float* const scores = shared.Take<float>(p.window);
  Score(of, 0, of.count, shared, scores);
  Weigh(of, scores, scores, 0, p.value_size, true, shared);
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const AttendHead& p, const Work& work) {
  if (p.attention.codes) return internal::Attend<int16_t>(p.attention, work);
  internal::Attend<float>(p.attention, work);
}

// Units that keep a device busy: heads of so many lanes need not be divided.
inline constexpr uint32_t kManyHeads = 512;

// scores [heads, window]. Each unit is a head of a lane for some slots, or for all where there are
// heads enough.
struct ScoreSlots {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  static constexpr uint32_t kSlots = 128;
  Attention attention;
  Place scores;

  KINGLET_HOST_DEVICE uint32_t Parts(uint32_t lanes) const {
    if (lanes * attention.heads >= kManyHeads) return 1;
    return (attention.window + kSlots - 1) / kSlots;
  }
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const {
    return lanes * attention.heads * Parts(lanes);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return attention.QueryBytes(); }
};

namespace internal {
template <class T>
KINGLET_HOST_DEVICE void ScorePart(const ScoreSlots& p, const Work& work) {
  const Attention& attention = p.attention;
  const uint32_t parts = p.Parts(work.lane_count);
  const LaneUnit unit(work, attention.heads * parts);
  const AttentionHead<T> of(attention, work, unit.lane, unit.part / parts);
  const uint32_t slots = (attention.window + parts - 1) / parts, begin = unit.part % parts * slots;
  const uint32_t end = begin + slots < of.count ? begin + slots : of.count;
  if (begin >= end) return;
  SharedMemory shared(work.block);
  float* const scores = work.At<float>(of.lane, p.scores) + uint64_t{of.head} * attention.window;
  Score(of, begin, end, shared, scores);
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const ScoreSlots& p, const Work& work) {
  if (p.attention.codes) return internal::ScorePart<int16_t>(p, work);
  internal::ScorePart<float>(p, work);
}

// Weights and sums of values from those scores. Each unit is a head of a lane for some columns of
// its values, or for all where there are heads enough.
struct WeighValues {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  static constexpr uint32_t kColumns = 16;  // whose codes are 32 bytes: what memory gives at once
  Attention attention;
  Place scores;

  KINGLET_HOST_DEVICE uint32_t Parts(uint32_t lanes) const {
    if (lanes * attention.heads >= kManyHeads) return 1;
    return (attention.value_size + kColumns - 1) / kColumns;
  }
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const {
    return lanes * attention.heads * Parts(lanes);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(attention.window) + attention.WeighBytes();
  }
};

namespace internal {
template <class T>
KINGLET_HOST_DEVICE void WeighPart(const WeighValues& p, const Work& work) {
  const Attention& attention = p.attention;
  const uint32_t parts = p.Parts(work.lane_count);
  const LaneUnit unit(work, attention.heads * parts);
  const AttentionHead<T> of(attention, work, unit.lane, unit.part / parts);
  const uint32_t part = unit.part % parts;
  const uint32_t begin = part * WeighValues::kColumns;
  const uint32_t left = attention.value_size - begin;
  const uint32_t columns =
      parts == 1 || left < WeighValues::kColumns ? left : WeighValues::kColumns;
  SharedMemory shared(work.block);
  const float* const scores =
      work.At<float>(of.lane, p.scores) + uint64_t{of.head} * attention.window;
  float* const weights = shared.Take<float>(attention.window);
  Weigh(of, scores, weights, begin, columns, part == 0, shared);
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const WeighValues& p, const Work& work) {
  if (p.attention.codes) return internal::WeighPart<int16_t>(p, work);
  internal::WeighPart<float>(p, work);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ATTENTION_H_
