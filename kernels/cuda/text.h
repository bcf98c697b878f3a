// Given tokens on a device, of one stream or of several, stream after stream: they run as lanes,
// whose scratch each has of its own and whose state is one, with longer rings. C++17.
//
// A ring of such a state has a slot for every token of the window and every token that runs, so no
// token takes the slot of one that another still sees. Successive tokens write successive rows
// (Lane::Row); the position of a token says how many of the rows before are its own stream's.
// Before each attention all tokens store their keys and values (StoreOwnRow, attention.h).
// MoveState copies what tokens of the first stream see from its state, and what later tokens of the
// last stream will see to that stream's state.
#ifndef KINGLET_KERNELS_CUDA_TEXT_H_
#define KINGLET_KERNELS_CUDA_TEXT_H_

#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/ring.h"

namespace kinglet::cuda {

// A ring, or a vector that every token writes completely, in both states. Bytes are even.
struct MovedState {
  uint64_t of_stream,
      of_text;  // offsets: in the stream's state; in the text's, or, of a vector, in
                // a token's scratch
  uint64_t slot_bytes;
  uint64_t lag;                       // Ring::lag
  uint32_t stream_slots, text_slots;  // 1 and 1 for a vector
  bool is_vector;
};

// A work item is a part of one of the `moved`, of a lane: its state is the stream's, its temporary
// memory the text's state, its scratch the token's that comes before or last, and its position the
// stream's number of tokens so far.
struct MoveState {
  static constexpr uint32_t kParts = 16;
  const MovedState* moved;  // [count]
  uint32_t count;
  bool to_text;

  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * count * kParts;
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

KINGLET_HOST_DEVICE inline void Run(const MoveState& p, const Work& work) {
  const LaneItem item(work, p.count * MoveState::kParts);
  const MovedState& moved = p.moved[item.part / MoveState::kParts];
  const uint32_t part = item.part % MoveState::kParts;
  const Lane& lane = work.lanes[item.lane];
  std::byte* const of_stream = lane.state + moved.of_stream;
  std::byte* const of_text = (moved.is_vector ? lane.scratch : lane.temporary) + moved.of_text;
  const uint64_t written = lane.position > moved.lag ? lane.position - moved.lag : 0;
  const uint64_t rows = moved.is_vector ? 1 : Least<uint64_t>(written, moved.stream_slots);
  const uint64_t words = moved.slot_bytes / sizeof(uint16_t);
  for (uint64_t i = part; i < rows; i += MoveState::kParts) {
    const uint64_t row = moved.is_vector ? 0 : written - rows + i;
    auto* const a = reinterpret_cast<uint16_t*>(of_stream + RingSlot(row, moved.stream_slots) *
                                                                moved.slot_bytes);
    auto* const b = reinterpret_cast<uint16_t*>(
        of_text + RingSlot(row + lane.shift, moved.text_slots) * moved.slot_bytes);
    work.block.ForEach(words, [&](uint64_t k) {
      if (p.to_text) {
        b[k] = a[k];
      } else {
        a[k] = b[k];
      }
    });
  }
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_TEXT_H_
