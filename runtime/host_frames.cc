#include "runtime/host_frames.h"

#include <algorithm>
#include <new>

namespace kinglet {

HostFrames::HostFrames(const BufferLayout& layout, size_t places) : places_(places) {
  for (Place& place : places_) {
    place.scratch = AllocateZeroed(layout.scratch_bytes);
    place.state = AllocateZeroed(layout.state_bytes);
    if (!place.scratch || !place.state) throw std::bad_alloc();
  }
}

bool HostFrames::Take(Frame& frame) {
  auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& candidate) {
    return candidate.taken > 0 && candidate.lane == frame.lane;
  });
  const bool had = place != places_.end();
  if (!had) {
    place = std::min_element(places_.begin(), places_.end(),
                             [](const Place& a, const Place& b) { return a.taken < b.taken; });
    place->lane = frame.lane;
  }
  place->taken = ++now_;
  frame.scratch = place->scratch.get();
  frame.state = place->state.get();
  return had;
}

}  // namespace kinglet
