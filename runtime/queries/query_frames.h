// The memory in which a session of many lanes answers queries: a few places, each with the results
// of one of the lanes that were queried last. The logits of one lane may take a megabyte. A few
// places stay in the processor's caches, while places for all lanes would not, and would take much
// memory in sessions of thousands of lanes. A query's input is in the stream's state, not here.
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
  // Where the states are: in the frames (on the host), or copied from a device into places.
  enum class States : uint8_t { kInFrames, kInPlaces };
  // Throws std::bad_alloc. Memory that is never written takes no pages of the system.
  QueryFrames(const BufferLayout& layout, size_t places, States states);
  // The bytes that a place allocates.
  static uint64_t BytesPerPlace(const BufferLayout& layout, States states);

  // Gives the frame's lane a place: its own, or that of the lane which took a place the longest
  // ago. Returns true if the place was the lane's own, and so contains its results.
  bool Take(StreamFrame& frame);

 private:
  struct Place {
    AlignedMemory scratch, state;  // `state` is null with States::kInFrames
    uint64_t taken = 0;            // now_ when the place was last taken; 0 if never
    uint32_t lane = 0;
  };
  std::vector<Place> places_;
  uint64_t now_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_QUERY_FRAMES_H_
