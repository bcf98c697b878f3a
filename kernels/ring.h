// Rings: the last tokens' rows in a fixed number of slots, a new row in place of the oldest. C++17,
// for the device too.
#ifndef KINGLET_KERNELS_RING_H_
#define KINGLET_KERNELS_RING_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace kinglet {

// The ring slot of row `row` (0, 1, ...), where `slots` are used in turn.
KINGLET_HOST_DEVICE constexpr uint64_t RingSlot(uint64_t row, uint64_t slots) {
  return row % slots;
}

// A state buffer as equal slots of which a token writes one: the token at `position` writes
// Slot(position), or nothing if position < lag, and every other slot keeps its bytes. Code that
// copies, saves or undoes a token's writes relies on this description. One slot is the entire
// buffer.
struct Ring {
  uint64_t slots = 1;  // divides the buffer's count
  uint64_t lag = 0;
  // Slot i is written when token i of the source is encoded; target tokens write none.
  bool of_source = false;
  // Encoding a source fills the buffer, which target tokens then overwrite.
  bool by_encoder = false;

  // Every token overwrites the entire buffer.
  constexpr bool IsWhole() const { return slots == 1 && lag == 0 && !of_source; }
  // REQUIRES: position >= lag, and not of_source.
  constexpr uint64_t Slot(uint64_t position) const { return RingSlot(position - lag, slots); }
  // The slots that the tokens at positions 0 .. tokens - 1 have written: the first ones.
  // REQUIRES: not of_source.
  constexpr uint64_t SlotsWritten(uint64_t tokens) const {
    const uint64_t written = tokens > lag ? tokens - lag : 0;
    return written < slots ? written : slots;
  }
};

// The window of the token at `position`: the last `size` tokens up to and including that token.
// Window slots 0 .. size - 1 are the tokens from the oldest to the newest, which ring slots store.
struct RingWindow {
  uint32_t size;
  uint32_t ring;    // slots, `size` or more
  uint32_t newest;  // ring slot of the token at `position`
  // Tokens in the window: the last window slots. In a ring of `size` slots, slots [0, filled).
  uint32_t filled;

  // With `restarts` a stream starts anew every `size` tokens, and the window has only later tokens.
  KINGLET_HOST_DEVICE constexpr RingWindow(uint64_t position, uint32_t window_size, bool restarts)
      : RingWindow(position, window_size, restarts, window_size, position) {}
  // In a longer ring, of which the token has row `row`.
  KINGLET_HOST_DEVICE constexpr RingWindow(uint64_t position, uint32_t window_size, bool restarts,
                                           uint32_t ring_slots, uint64_t row)
      : size(window_size),
        ring(ring_slots),
        newest(static_cast<uint32_t>(RingSlot(row, ring_slots))),
        filled(restarts || position < window_size
                   ? static_cast<uint32_t>(RingSlot(position, window_size)) + 1
                   : window_size) {}

  // Ring slot of window slot 0.
  KINGLET_HOST_DEVICE constexpr uint32_t Oldest() const {
    const uint32_t slot = newest + 1 + (ring - size);
    return slot < ring ? slot : slot - ring;
  }
  // Ring slot of window slot s.
  KINGLET_HOST_DEVICE constexpr uint32_t Slot(uint32_t s) const {
    const uint32_t slot = Oldest() + s;
    return slot < ring ? slot : slot - ring;
  }
  // The first window slot that has a token; all later slots have one.
  KINGLET_HOST_DEVICE constexpr uint32_t FirstFilled() const { return size - filled; }
};

// The pairs (hidden state, token) of a neural cache that take part in the distribution after the
// token at `position`: ring slots [0, CachePairs). The token at `position` appends the pair of the
// hidden state before it, so that the ring's row is position - 1.
KINGLET_HOST_DEVICE constexpr uint32_t CachePairs(uint64_t position, uint32_t capacity,
                                                  uint64_t first_position) {
  if (position < first_position) return 0;
  return position < capacity ? static_cast<uint32_t>(position) : capacity;
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_RING_H_
