// Attention of one token to the slots of its window, which a ring stores, or to the rows of an
// encoded source (kernels/op.h, WindowAttention and SourceAttention). C++17.
//
//   score[s] = (q . k[s] + position term) * key_size^-1/2,   weights = softmax(score),
//   out = sum over s of weights[s] v[s]
//
// Short windows: one node, AttendHead. A thread block, or for many lanes a warp, computes a head of
// a lane: it reads keys and values once, and keeps scores and weights in shared memory. A head
// takes 34 barriers, which a warp need not do for the entire thread block, and many lanes have
// enough heads for all warps.
//
// Long windows: one thread block would take as long as one multiprocessor needs to read hundreds of
// kilobytes, so there are two nodes of several work items each. ScoreSlots divides a head's slots
// among thread blocks and writes the scores to the lane's memory. WeighValues divides the columns
// of the values; each of its thread blocks computes the softmax again.
//
// attention_head.h has the work of one thread block or warp.
#ifndef KINGLET_KERNELS_CUDA_ATTENTION_H_
#define KINGLET_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>

#include "kernels/cuda/attention_head.h"
#include "kernels/cuda/node.h"

namespace kinglet::cuda {

// Scores, weights and weighted sum in one node. A work item is a head of a lane, or, for kManyLanes
// lanes and more, a head for each warp. Without FitWarps the node never has a launch of its own.
struct AttendHead {
  static constexpr uint32_t kAloneFromLanes = kManyLanes, kThreads = 256;
  Attention attention;

  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t warps) const {
    const uint32_t heads = lanes * attention.heads;
    return lanes >= kAloneFromLanes && FitWarps() ? DivideUp(heads, warps) : heads;
  }
  // Shared memory of a head that `threads` threads compute.
  KINGLET_HOST_DEVICE uint64_t HeadBytes(uint32_t threads) const {
    return attention.QueryBytes() + SharedMemory::Bytes<float>(attention.window) +
           attention.WeighBytes(threads);
  }
  // Whether the heads of all warps fit the shared memory that every device grants by default.
  KINGLET_HOST_DEVICE bool FitWarps() const { return WarpsBytes() <= 49152; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    const uint64_t of_block = HeadBytes(kThreads);
    return FitWarps() && WarpsBytes() > of_block ? WarpsBytes() : of_block;
  }

 private:
  KINGLET_HOST_DEVICE uint64_t WarpsBytes() const {
    return kThreads / kWarpThreads * HeadBytes(kWarpThreads);
  }
};

namespace internal {
// Head number `head` of all lanes' heads.
template <class T, class Team>
KINGLET_HOST_DEVICE void Attend(const Attention& p, const Work& work, const Team& team,
                                uint32_t head) {
  const AttentionHead<T> of(p, work, head / p.heads, head % p.heads);
  SharedMemory shared(team);
  float* const scores = shared.Take<float>(p.window);
  Score(of, team, 0, of.count, shared, scores);
  Weigh(of, team, scores, scores, 0, p.value_size, true, shared);
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void RunForFewLanes(const AttendHead& p, const Work& work) {
  WithElements(p.attention.codes, [&](auto zero) {
    internal::Attend<decltype(zero)>(p.attention, work, work.block, work.item);
  });
}
KINGLET_HOST_DEVICE inline void Run(const AttendHead& p, const Work& work) {
  const uint32_t heads = work.lane_count * p.attention.heads;
  work.block.EachWarp([&](const Warp& warp) {
    const uint32_t head = work.item * work.block.warps() + warp.index();
    if (head >= heads) return;
    const WarpTeam team(work.block.shared() + warp.index() * p.HeadBytes(kWarpThreads),
                        work.block.order());
    WithElements(p.attention.codes, [&](auto zero) {
      internal::Attend<decltype(zero)>(p.attention, work, team, head);
    });
  });
}

// How many heads of all lanes keep a device busy; the work of fewer heads is divided.
inline constexpr uint32_t kManyHeads = 512;

// One of the two nodes of a long window. A work item is a part of a head of a lane.
struct HeadParts {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Attention attention;
  Place scores;  // [heads, window]

  // The work items if a head's `size` elements are divided into parts of `part`.
  KINGLET_HOST_DEVICE uint32_t Parts(uint32_t lanes, uint32_t size, uint32_t part) const {
    return lanes * attention.heads >= kManyHeads ? 1 : DivideUp(size, part);
  }
};

// Computes scores[s]. The parts of a head are slots.
struct ScoreSlots : HeadParts {
  static constexpr uint32_t kSlots = 128;

  KINGLET_HOST_DEVICE uint32_t Parts(uint32_t lanes) const {
    return HeadParts::Parts(lanes, attention.window, kSlots);
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * attention.heads * Parts(lanes);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return attention.QueryBytes(); }
};

namespace internal {
template <class T>
KINGLET_HOST_DEVICE void ScorePart(const ScoreSlots& p, const Work& work) {
  const Attention& attention = p.attention;
  const uint32_t parts = p.Parts(work.lane_count);
  const LaneItem item(work, attention.heads * parts);
  const AttentionHead<T> of(attention, work, item.lane, item.part / parts);
  const uint32_t slots = DivideUp(attention.window, parts), begin = item.part % parts * slots;
  const uint32_t end = Least(begin + slots, of.count);
  if (begin >= end) return;
  SharedMemory shared(work.block);
  float* const scores = work.At<float>(of.lane, p.scores) + uint64_t{of.head} * attention.window;
  Score(of, work.block, begin, end, shared, scores);
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const ScoreSlots& p, const Work& work) {
  WithElements(p.attention.codes, [&](auto zero) { internal::ScorePart<decltype(zero)>(p, work); });
}

// Computes weights and out from the scores. The parts of a head are columns of its values.
struct WeighValues : HeadParts {
  static constexpr uint32_t kColumns = 16;  // their codes are 32 bytes, one memory sector

  KINGLET_HOST_DEVICE uint32_t Parts(uint32_t lanes) const {
    return HeadParts::Parts(lanes, attention.value_size, kColumns);
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * attention.heads * Parts(lanes);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(attention.window) +
           attention.WeighBytes(AttendHead::kThreads);
  }
};

namespace internal {
template <class T>
KINGLET_HOST_DEVICE void WeighPart(const WeighValues& p, const Work& work) {
  const Attention& attention = p.attention;
  const uint32_t parts = p.Parts(work.lane_count);
  const LaneItem item(work, attention.heads * parts);
  const AttentionHead<T> of(attention, work, item.lane, item.part / parts);
  const uint32_t part = item.part % parts;
  const uint32_t begin = part * WeighValues::kColumns;
  const uint32_t left = attention.value_size - begin;
  const uint32_t columns =
      parts == 1 || left < WeighValues::kColumns ? left : WeighValues::kColumns;
  SharedMemory shared(work.block);
  const float* const scores =
      work.At<float>(of.lane, p.scores) + uint64_t{of.head} * attention.window;
  float* const weights = shared.Take<float>(attention.window);
  Weigh(of, work.block, scores, weights, begin, columns, part == 0, shared);
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const WeighValues& p, const Work& work) {
  WithElements(p.attention.codes, [&](auto zero) { internal::WeighPart<decltype(zero)>(p, work); });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ATTENTION_H_
