// Queries through the C interface. A query of one lane is a query of several lanes with one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/accounting/meter.h"
#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

namespace kinglet {
namespace {

// The size of kinglet_work in its first version.
constexpr uint32_t kSmallestWork = offsetof(kinglet_work, cluster_count);

// A caller's array with an element for every token.
Result<std::span<float>> ReadArrayOfWords(const char* function, const kinglet_session* session,
                                          float* out, uint64_t capacity) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
  const uint32_t words = session->session->model().vocabulary_size();
  KINGLET_RETURN_IF_ERROR(RequireCapacity(function, words, capacity));
  return std::span<float>(out, words);
}

Status LogProbability(const char* function, kinglet_session* session, const uint32_t* lanes,
                      const uint32_t* ids, uint64_t count, double* out) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  KINGLET_ASSIGN_OR_RETURN(const auto queried, ReadArray(function, "lanes", lanes, count));
  KINGLET_ASSIGN_OR_RETURN(const auto words, ReadArray(function, "ids", ids, count));
  KINGLET_ASSIGN_OR_RETURN(const auto answers, ReadArray(function, "out", out, count));
  return session->session->LogProbabilityLanes(queried, words, answers);
}

// `per_lane` may be NULL.
Status TopK(const char* function, kinglet_session* session, const uint32_t* lanes, uint64_t count,
            uint32_t k, uint32_t* ids, double* log_probabilities, uint64_t capacity,
            uint32_t* per_lane) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  KINGLET_ASSIGN_OR_RETURN(const auto queried, ReadArray(function, "lanes", lanes, count));
  const uint32_t wanted = std::min(k, session->session->model().vocabulary_size());
  if (ids != nullptr || log_probabilities != nullptr) {
    // Session::CheckLanes refuses more lanes than the session has.
    const uint64_t rows = std::min<uint64_t>(queried.size(), session->session->lanes());
    if (Status status = RequireCapacity(function, rows * wanted, capacity); !status.ok()) {
      if (per_lane != nullptr) *per_lane = wanted;
      return status;
    }
  }
  const uint64_t size = queried.size() * wanted;
  KINGLET_RETURN_IF_ERROR(
      session->session->TopKLanes(queried, wanted, {ids, ids == nullptr ? 0 : size},
                                  {log_probabilities, log_probabilities == nullptr ? 0 : size}));
  if (per_lane != nullptr) *per_lane = wanted;
  return Status();
}

}  // namespace
}  // namespace kinglet

using kinglet::Guard;
using kinglet::ReadArray;
using kinglet::ReadArrayOfWords;
using kinglet::RequireLane;
using kinglet::RequirePointer;
using kinglet::Status;

kinglet_status kinglet_session_log_probability(kinglet_session* session, uint32_t lane, uint32_t id,
                                               double* out) {
  const char* const function = __func__;
  return Guard([&] { return kinglet::LogProbability(function, session, &lane, &id, 1, out); });
}

kinglet_status kinglet_session_log_probability_lanes(kinglet_session* session,
                                                     const uint32_t* lanes, const uint32_t* ids,
                                                     uint64_t count, double* out) {
  const char* const function = __func__;
  return Guard([&] { return kinglet::LogProbability(function, session, lanes, ids, count, out); });
}

kinglet_status kinglet_session_top_k(kinglet_session* session, uint32_t lane, uint32_t k,
                                     uint32_t* ids, double* log_probabilities, uint64_t capacity,
                                     uint32_t* count) {
  const char* const function = __func__;
  return Guard([&] {
    return kinglet::TopK(function, session, &lane, 1, k, ids, log_probabilities, capacity, count);
  });
}

kinglet_status kinglet_session_top_k_lanes(kinglet_session* session, const uint32_t* lanes,
                                           uint64_t count, uint32_t k, uint32_t* ids,
                                           double* log_probabilities, uint64_t capacity,
                                           uint32_t* per_lane) {
  const char* const function = __func__;
  return Guard([&] {
    return kinglet::TopK(function, session, lanes, count, k, ids, log_probabilities, capacity,
                         per_lane);
  });
}

kinglet_status kinglet_session_compute_lanes(kinglet_session* session, const uint32_t* lanes,
                                             uint64_t count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto queried, ReadArray(function, "lanes", lanes, count));
    return session->session->ComputeAllLanes(queried);
  });
}

kinglet_status kinglet_session_log_probabilities(kinglet_session* session, uint32_t lane,
                                                 float* out, uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto all, ReadArrayOfWords(function, session, out, capacity));
    return session->session->LogProbabilities(all, lane);
  });
}

kinglet_status kinglet_session_probabilities(kinglet_session* session, uint32_t lane, float* out,
                                             uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto all, ReadArrayOfWords(function, session, out, capacity));
    return session->session->Probabilities(all, lane);
  });
}

kinglet_status kinglet_session_log_probabilities_of(kinglet_session* session, uint32_t lane,
                                                    const uint32_t* ids, uint64_t count,
                                                    double* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto words, ReadArray(function, "ids", ids, count));
    KINGLET_ASSIGN_OR_RETURN(const auto answers, ReadArray(function, "out", out, count));
    return session->session->LogProbabilitiesOf(words, answers, lane);
  });
}

kinglet_status kinglet_session_last_work(const kinglet_session* session, uint32_t lane,
                                         kinglet_work* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequireLane(function, session, lane));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    const kinglet::Session& of = *session->session;
    const kinglet::QueryWork& work = of.last_work(lane);
    kinglet_work answer{};
    answer.cache_computed = work.cache ? 1 : 0;
    answer.clusters_opened = work.clusters.LowBits();
    answer.cluster_count = work.clusters.Count();
    if (of.position(lane) > 0) {  // else there was no query
      const kinglet::OperationTally tally = kinglet::QueryOperations(
          of.model().plan(), kinglet::TraitsOf(of.model().backend()), of.position(lane) - 1, work);
      answer.multiplications = tally.multiplications;
      answer.additions = tally.additions;
      answer.others = tally.others;
    }
    return kinglet::WriteAnswer(function, answer, out, kinglet::kSmallestWork);
  });
}
