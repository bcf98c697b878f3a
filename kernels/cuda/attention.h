// Attention of one token to the slots of its window, which a ring stores, or to the rows of an
// encoded source (kernels/op.h, WindowAttention and SourceAttention). C++17.
//
//   score[s] = (q . k[s] + position term) * scale,   weights = softmax(score),
//   out = sum over s of weights[s] v[s]
//
// Two nodes. ScoreSlots divides a head's slots among thread blocks and writes the scores to the
// lane's memory. WeighValues divides the columns of the values; each of its thread blocks computes
// the softmax again. So long windows, of which one multiprocessor would read hundreds of kilobytes,
// keep several busy. attention_head.h has the work of one thread block.
//
// Layers of quantised decoders have attentions of their own (decoder_stack.h, attend_tokens.h).
#ifndef KINGLET_KERNELS_CUDA_ATTENTION_H_
#define KINGLET_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>

#include "kernels/cuda/attention_head.h"
#include "kernels/cuda/node.h"

namespace kinglet::cuda {

// How many heads of all lanes keep a device busy; the work of fewer heads is divided.
inline constexpr uint32_t kManyHeads = 512;

// One of the two nodes. A work item is a part of a head of a lane.
struct HeadParts {
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

KINGLET_HOST_DEVICE inline void Run(const ScoreSlots& p, const Work& work) {
  const Attention& attention = p.attention;
  const uint32_t parts = p.Parts(work.lane_count);
  const LaneItem item(work, attention.heads * parts);
  const AttentionHead of(attention, work, item.lane, item.part / parts);
  const uint32_t slots = DivideUp(attention.window, parts), begin = item.part % parts * slots;
  const uint32_t end = Least(begin + slots, of.count);
  if (begin >= end) return;
  SharedMemory shared(work.block);
  float* const scores = work.At<float>(of.lane, p.scores) + uint64_t{of.head} * attention.window;
  internal::Score(of, work.block, begin, end, shared, scores);
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
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return attention.WeighBytes(); }
};

KINGLET_HOST_DEVICE inline void Run(const WeighValues& p, const Work& work) {
  const Attention& attention = p.attention;
  const uint32_t parts = p.Parts(work.lane_count);
  const LaneItem item(work, attention.heads * parts);
  const AttentionHead of(attention, work, item.lane, item.part / parts);
  const uint32_t part = item.part % parts;
  const uint32_t begin = part * WeighValues::kColumns;
  const uint32_t left = attention.value_size - begin;
  const uint32_t columns =
      parts == 1 || left < WeighValues::kColumns ? left : WeighValues::kColumns;
  SharedMemory shared(work.block);
  const float* const scores =
      work.At<float>(of.lane, p.scores) + uint64_t{of.head} * attention.window;
  internal::Weigh(of, work.block, scores, begin, columns, part == 0, shared);
}

// Stores a token's own key and value, before other tokens of its stream attend to them (text.h).
struct StoreOwnRow : ByLane {
  Attention attention;
};

KINGLET_HOST_DEVICE inline void Run(const StoreOwnRow& p, const Work& work) {
  for (uint32_t head = 0; head < p.attention.heads; ++head) {
    internal::StoreOwn(AttentionHead(p.attention, work, work.item, head), work.block);
  }
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ATTENTION_H_
