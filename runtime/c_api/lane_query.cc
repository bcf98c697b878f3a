// Queries of several lanes at once through the C interface.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

namespace kinglet {
namespace {

// A caller's array of `count` elements, which is none where there are no lanes.
template <class T>
Result<std::span<T>> ReadArray(const char* function, const char* name, T* array, uint64_t count) {
  if (count == 0) return std::span<T>();
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, name, array));
  KINGLET_ASSIGN_OR_RETURN(const size_t n, ReadCount(function, "count", count, sizeof *array));
  return std::span<T>(array, n);
}

}  // namespace
}  // namespace kinglet

using kinglet::Guard;
using kinglet::ReadArray;
using kinglet::RequirePointer;
using kinglet::Status;

kinglet_status kinglet_session_log_probability_lanes(kinglet_session* session,
                                                     const uint32_t* lanes, const uint32_t* ids,
                                                     uint64_t count, double* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto asked, ReadArray(function, "lanes", lanes, count));
    KINGLET_ASSIGN_OR_RETURN(const auto words, ReadArray(function, "ids", ids, count));
    KINGLET_ASSIGN_OR_RETURN(const auto answers, ReadArray(function, "out", out, count));
    return session->session->LogProbabilityLanes(asked, words, answers);
  });
}

kinglet_status kinglet_session_top_k_lanes(kinglet_session* session, const uint32_t* lanes,
                                           uint64_t count, uint32_t k, uint32_t* ids,
                                           double* log_probabilities, uint64_t capacity,
                                           uint32_t* per_lane) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto asked, ReadArray(function, "lanes", lanes, count));
    const uint32_t wanted = std::min(k, session->session->model().vocabulary_size());
    if (ids != nullptr || log_probabilities != nullptr) {
      // More lanes than there are will be refused.
      const uint64_t rows = std::min<uint64_t>(asked.size(), session->session->lanes());
      if (Status status = kinglet::RequireCapacity(function, rows * wanted, capacity);
          !status.ok()) {
        if (per_lane != nullptr) *per_lane = wanted;
        return status;
      }
    }
    KINGLET_ASSIGN_OR_RETURN(const auto best, session->session->TopKLanes(asked, wanted));
    size_t entry = 0;
    for (const std::vector<kinglet::Candidate>& of_lane : best) {
      for (const kinglet::Candidate& candidate : of_lane) {
        if (ids != nullptr) ids[entry] = candidate.id;
        if (log_probabilities != nullptr) log_probabilities[entry] = candidate.log_probability;
        ++entry;
      }
    }
    if (per_lane != nullptr) *per_lane = wanted;
    return Status();
  });
}

kinglet_status kinglet_session_sample_lanes(kinglet_session* session, const uint32_t* lanes,
                                            const uint64_t* seeds, uint64_t count,
                                            double temperature, uint32_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto asked, ReadArray(function, "lanes", lanes, count));
    KINGLET_ASSIGN_OR_RETURN(const auto draws, ReadArray(function, "seeds", seeds, count));
    KINGLET_ASSIGN_OR_RETURN(const auto answers, ReadArray(function, "out", out, count));
    return session->session->SampleLanes(asked, draws, temperature, answers);
  });
}

kinglet_status kinglet_session_compute_lanes(kinglet_session* session, const uint32_t* lanes,
                                             uint64_t count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto asked, ReadArray(function, "lanes", lanes, count));
    return session->session->ComputeAllLanes(asked);
  });
}
