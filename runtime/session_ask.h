// How a session runs a query, for the files that implement its queries.
#ifndef KINGLET_RUNTIME_SESSION_ASK_H_
#define KINGLET_RUNTIME_SESSION_ASK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <variant>

#include "runtime/session_contents.h"
#include "runtime/session_refusals.h"

namespace kinglet {

// Gives the frame of a stream that is about to be queried the memory in which queries are answered.
// If other lanes have used that memory since, the stream's results are invalidated, or, on a
// device, fetched again.
template <class T>
Status Session::Contents::FindPlace(Distribution<T>& distribution, StreamFrame& frame) {
  if (!query_frames) return Status();
  const bool had = query_frames->Take(frame);
  if (execution.device) return had ? Status() : distribution.FetchOpened(frame);
  if (!had) distribution.Invalidate();
  return Status();
}

// Calls query(streams, index of the first of them in `numbers`) for at most kLanesTogether lanes at
// a time.
template <class Query>
Status Session::Contents::Ask(std::span<const uint32_t> numbers, const Query& query) {
  KINGLET_RETURN_IF_ERROR(CheckQueriedLanes(numbers));
  const ComputingCall call(execution);
  const auto ask = [&]<class T>(const QueryMemory<T>&) -> Status {
    const auto distribution = [&](size_t i) {
      return &std::get<Distribution<T>>(lanes[numbers[i]].distribution);
    };
    for (size_t i = 0; i < numbers.size(); ++i) distribution(i)->ResetWork();
    for (size_t first = 0; first < numbers.size(); first += kLanesTogether) {
      const size_t count = std::min(kLanesTogether, numbers.size() - first);
      std::array<QueriedStream<T>, kLanesTogether> streams;
      for (size_t i = 0; i < count; ++i) {
        streams[i] = {distribution(first + i), lanes[numbers[first + i]].stream.LastFrame()};
        KINGLET_RETURN_IF_ERROR(FindPlace(*streams[i].distribution, streams[i].frame));
      }
      KINGLET_RETURN_IF_ERROR(query(std::span(streams).first(count), first));
    }
    return Status();
  };
  try {
    return std::visit(ask, query_memory);
  } catch (const std::bad_alloc&) {
    return session::OutOfMemory();
  }
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_ASK_H_
