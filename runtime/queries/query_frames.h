// The memory in which a session of many lanes answers queries: a few places, which the lanes that
// were queried last have. The logits of one lane may take a megabyte. Those of a few lanes stay in
// the processor's caches, while a place for every lane would not, and would take much memory in
// sessions of thousands of lanes. What a query reads of its token is in the stream's state, not
// here.
#ifndef KINGLET_RUNTIME_QUERIES_QUERY_FRAMES_H_
#define KINGLET_RUNTIME_QUERIES_QUERY_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "runtime/execute.h"

namespace kinglet {

class QueryFrames {
 public:
  // Whether frames have the memory of their state (on the host), or places hold a copy of it (from
  // a device).
  enum class States : uint8_t { kInFrames, kInPlaces };
  // Throws std::bad_alloc. Memory that nothing is written to takes no pages of the system.
  QueryFrames(const BufferLayout& layout, size_t places, States states);
  // The bytes that a place allocates.
  static uint64_t BytesPerPlace(const BufferLayout& layout, States states);

  // Gives the frame's lane a place: the one it has, or that of the lane that took its place the
  // longest ago. Returns true if the lane already had the place, with what it left there.
  bool Take(StreamFrame& frame);

 private:
  struct Place {
    AlignedMemory scratch, state;  // state: null with States::kInFrames
    uint64_t taken = 0;            // the value of now_ when it was last taken; 0: never
    uint32_t lane = 0;
  };
  std::vector<Place> places_;
  uint64_t now_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_QUERY_FRAMES_H_
