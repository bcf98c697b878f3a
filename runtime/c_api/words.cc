// Queries that look for words, through the C interface.
#include "kinglet/words.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/next_characters.h"

namespace kinglet {
namespace {

Status WriteTokens(const char* function, const std::vector<Candidate>& words, uint32_t* ids,
                   double* log_probabilities, uint64_t capacity, uint32_t* count) {
  const auto pair = [](const Candidate& word) { return std::pair(word.id, word.log_probability); };
  return WritePairs(function, words, pair, ids, log_probabilities, capacity, count);
}

Result<TokenSet> ReadAllowed(const char* function, const kinglet_session* session,
                             const uint32_t* allowed, uint64_t count) {
  KINGLET_ASSIGN_OR_RETURN(const auto ids, ReadArray(function, "allowed", allowed, count));
  const uint32_t words = session->session->model().vocabulary_size();
  for (const uint32_t id : ids) {
    if (id < words) continue;
    return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, function, "allowed",
                           "numbers below " + std::to_string(words), std::to_string(id));
  }
  return TokenSet(words, ids);
}

}  // namespace
}  // namespace kinglet

using kinglet::Get;
using kinglet::Guard;
using kinglet::ReadAllowed;
using kinglet::ReadPrefix;
using kinglet::RequirePointer;
using kinglet::Result;
using kinglet::Status;
using kinglet::WriteTokens;

kinglet_status kinglet_session_top_p(kinglet_session* session, uint32_t lane, double share,
                                     uint32_t* ids, double* log_probabilities, uint64_t capacity,
                                     uint32_t* count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto words, session->session->TopP(share, lane));
    return WriteTokens(function, words, ids, log_probabilities, capacity, count);
  });
}

kinglet_status kinglet_session_rank(kinglet_session* session, uint32_t lane, uint32_t id,
                                    uint32_t* out) {
  return Get(__func__, "session", session, out, [&] { return session->session->Rank(id, lane); });
}

kinglet_status kinglet_session_allowed_top_k(kinglet_session* session, uint32_t lane,
                                             const uint32_t* allowed, uint64_t allowed_count,
                                             uint32_t k, uint32_t* ids, double* log_probabilities,
                                             uint64_t capacity, uint32_t* count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto set,
                             ReadAllowed(function, session, allowed, allowed_count));
    KINGLET_ASSIGN_OR_RETURN(const auto words, session->session->TopKOf(set, k, lane));
    return WriteTokens(function, words, ids, log_probabilities, capacity, count);
  });
}

kinglet_status kinglet_session_allowed_probability(kinglet_session* session, uint32_t lane,
                                                   const uint32_t* allowed, uint64_t allowed_count,
                                                   double* out) {
  const char* const function = __func__;
  return Get(function, "session", session, out, [&]() -> Result<double> {
    KINGLET_ASSIGN_OR_RETURN(const auto set,
                             ReadAllowed(function, session, allowed, allowed_count));
    return session->session->ProbabilityOf(set, lane);
  });
}

kinglet_status kinglet_session_prefix_top_k(kinglet_session* session, uint32_t lane,
                                            const char* prefix, uint64_t length, uint32_t k,
                                            uint32_t* ids, double* log_probabilities,
                                            uint64_t capacity, uint32_t* count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto text, ReadPrefix(function, prefix, length));
    KINGLET_ASSIGN_OR_RETURN(const auto set, session->session->WithPrefix(text));
    KINGLET_ASSIGN_OR_RETURN(const auto words, session->session->TopKOf(set, k, lane));
    return WriteTokens(function, words, ids, log_probabilities, capacity, count);
  });
}

kinglet_status kinglet_session_prefix_probability(kinglet_session* session, uint32_t lane,
                                                  const char* prefix, uint64_t length,
                                                  double* out) {
  const char* const function = __func__;
  return Get(function, "session", session, out, [&]() -> Result<double> {
    KINGLET_ASSIGN_OR_RETURN(const auto text, ReadPrefix(function, prefix, length));
    KINGLET_ASSIGN_OR_RETURN(const auto set, session->session->WithPrefix(text));
    return session->session->ProbabilityOf(set, lane);
  });
}

kinglet_status kinglet_session_next_characters(kinglet_session* session, uint32_t lane,
                                               const char* prefix, uint64_t length,
                                               uint32_t* characters, double* probabilities,
                                               uint64_t capacity, uint32_t* count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto text, ReadPrefix(function, prefix, length));
    KINGLET_ASSIGN_OR_RETURN(const auto next, session->session->NextCharacters(text, lane));
    return kinglet::WriteNextCharacters(function, next, characters, probabilities, capacity, count);
  });
}

kinglet_status kinglet_session_interval(kinglet_session* session, uint32_t lane, uint32_t id,
                                        uint64_t* low, uint64_t* high) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "low", low));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "high", high));
    KINGLET_ASSIGN_OR_RETURN(const auto interval, session->session->IntervalOf(id, lane));
    *low = interval.low;
    *high = interval.high;
    return Status();
  });
}

kinglet_status kinglet_session_word_at(kinglet_session* session, uint32_t lane, uint32_t point,
                                       uint32_t* out) {
  return Get(__func__, "session", session, out,
             [&] { return session->session->TokenAt(point, lane); });
}
