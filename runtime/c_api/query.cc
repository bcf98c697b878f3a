// Queries through the C interface.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/accounting/meter.h"
#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

namespace kinglet {
namespace {

// Of its first version.
constexpr uint32_t kSmallestWork = offsetof(kinglet_work, cluster_count);

// A caller's array of one number for every word.
Result<std::span<float>> EveryWord(const char* function, const kinglet_session* session, float* out,
                                   uint64_t capacity) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
  const uint32_t words = session->session->model().vocabulary_size();
  KINGLET_RETURN_IF_ERROR(RequireCapacity(function, words, capacity));
  return std::span<float>(out, words);
}

}  // namespace
}  // namespace kinglet

using kinglet::Guard;
using kinglet::RequireLane;
using kinglet::RequirePointer;
using kinglet::Status;

kinglet_status kinglet_session_log_probability(kinglet_session* session, uint32_t lane, uint32_t id,
                                               double* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(*out, session->session->LogProbability(id, lane));
    return Status();
  });
}

kinglet_status kinglet_session_log_probabilities(kinglet_session* session, uint32_t lane,
                                                 float* out, uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const std::span<float> all,
                             kinglet::EveryWord(function, session, out, capacity));
    return session->session->LogProbabilities(all, lane);
  });
}

kinglet_status kinglet_session_log_probabilities_of(kinglet_session* session, uint32_t lane,
                                                    const uint32_t* ids, uint64_t count,
                                                    double* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    if (count > 0) {
      KINGLET_RETURN_IF_ERROR(RequirePointer(function, "ids", ids));
      KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    }
    KINGLET_ASSIGN_OR_RETURN(const size_t n,
                             kinglet::ReadCount(function, "count", count, sizeof *out));
    return session->session->LogProbabilitiesOf({ids, n}, {out, n}, lane);
  });
}

kinglet_status kinglet_session_probabilities(kinglet_session* session, uint32_t lane, float* out,
                                             uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const std::span<float> all,
                             kinglet::EveryWord(function, session, out, capacity));
    return session->session->Probabilities(all, lane);
  });
}

kinglet_status kinglet_session_top_k(kinglet_session* session, uint32_t lane, uint32_t k,
                                     uint32_t* ids, double* log_probabilities, uint64_t capacity,
                                     uint32_t* count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    const uint32_t wanted = std::min(k, session->session->model().vocabulary_size());
    if (ids != nullptr || log_probabilities != nullptr) {
      if (Status status = kinglet::RequireCapacity(function, wanted, capacity); !status.ok()) {
        if (count != nullptr) *count = wanted;
        return status;
      }
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<kinglet::Candidate> best,
                             session->session->TopK(wanted, lane));
    for (size_t i = 0; i < best.size(); ++i) {
      if (ids != nullptr) ids[i] = best[i].id;
      if (log_probabilities != nullptr) log_probabilities[i] = best[i].log_probability;
    }
    if (count != nullptr) *count = static_cast<uint32_t>(best.size());
    return Status();
  });
}

kinglet_status kinglet_session_sample(kinglet_session* session, uint32_t lane, uint64_t seed,
                                      double temperature, uint32_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(*out, session->session->Sample(seed, temperature, lane));
    return Status();
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
