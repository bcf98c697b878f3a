// Where queries are answered in a session of many lanes: memory of the host for the lanes that
// were asked last. The logits of one lane may be a megabyte. Few lanes' stay in the processor's
// caches, where every lane's would go to memory and back, and sessions of thousands of lanes need
// little. What queries read of a token is in its stream's state, wherever they work.
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
  // Places for so many lanes, whose states are on the host, or copied there too: from a device.
  // Pages that nothing is written to are never touched. Throws std::bad_alloc.
  enum class States : uint8_t { kInFrames, kInPlaces };
  QueryFrames(const BufferLayout& layout, size_t places, States states);
  // What a place allocates.
  static uint64_t BytesPerPlace(const BufferLayout& layout, States states);

  // Gives the frame's lane a place, which keeps it while fewer than all `places` other lanes have
  // taken one. True if the place is the one that the lane has had: what was left in it is there.
  bool Take(StreamFrame& frame);

 private:
  struct Place {
    AlignedMemory scratch, state;  // state: null where frames keep their own
    uint64_t taken = 0;            // when, last; 0: by nobody yet
    uint32_t lane = 0;
  };
  std::vector<Place> places_;
  uint64_t now_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_QUERY_FRAMES_H_
