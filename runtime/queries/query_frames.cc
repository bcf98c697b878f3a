#include "runtime/queries/query_frames.h"

#include <algorithm>
#include <new>

namespace kinglet {

QueryFrames::QueryFrames(const BufferLayout& layout, size_t places, States states)
    : places_(places) {
  for (Place& place : places_) {
    place.scratch = AllocateZeroed(layout.scratch_bytes);
    if (!place.scratch) throw std::bad_alloc();
    if (states == States::kInFrames) continue;
    place.state = AllocateZeroed(layout.state_bytes);
    if (!place.state) throw std::bad_alloc();
  }
}

uint64_t QueryFrames::BytesPerPlace(const BufferLayout& layout, States states) {
  return sizeof(Place) + layout.scratch_bytes +
         (states == States::kInPlaces ? layout.state_bytes : 0);
}

bool QueryFrames::Take(StreamFrame& frame) {
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
  if (place->state) frame.state = place->state.get();
  return had;
}

}  // namespace kinglet
