// Where questions find what a device has computed: memory of the host for the lanes that were asked
// last, so that sessions of thousands of lanes need little of it.
#ifndef KINGLET_RUNTIME_HOST_FRAMES_H_
#define KINGLET_RUNTIME_HOST_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "runtime/execute.h"

namespace kinglet {

class HostFrames {
 public:
  // Places for so many lanes. Pages that nothing is copied to are never touched. Throws
  // std::bad_alloc.
  HostFrames(const BufferLayout& layout, size_t places);

  // Gives the frame's lane a place, which keeps it while fewer than all `places` other lanes have
  // taken one. True if the place is the one that the lane has had: what was copied to it is there.
  bool Take(Frame& frame);

 private:
  struct Place {
    AlignedMemory scratch, state;
    uint64_t taken = 0;  // when, last; 0: by nobody yet
    uint32_t lane = 0;
  };
  std::vector<Place> places_;
  uint64_t now_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_HOST_FRAMES_H_
