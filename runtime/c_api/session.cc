// Sessions through the C interface: lanes and their tokens.
#include "runtime/session.h"

#include <span>
#include <string>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

namespace kinglet {
namespace {

// The size of the structure's first version, which is this one.
constexpr uint32_t kSmallestSessionOptions = sizeof(kinglet_session_options);

}  // namespace

Result<SessionOptions> ReadSessionOptions(const char* function,
                                          const kinglet_session_options* given) {
  KINGLET_ASSIGN_OR_RETURN(const kinglet_session_options options,
                           ReadOptions(function, given, kSmallestSessionOptions));
  if (options.empty_cache > KINGLET_EMPTY_CACHE_NORMALISED) {
    return Invalid(function, "options->empty_cache", "a kinglet_empty_cache",
                   std::to_string(options.empty_cache));
  }
  SessionOptions result;
  if (options.empty_cache == KINGLET_EMPTY_CACHE_NORMALISED) {
    result.empty_cache = EmptyCache::kNormalised;
  }
  if (options.lanes != 0) result.lanes = options.lanes;
  if (options.threads != 0) result.threads = options.threads;
  return result;
}

}  // namespace kinglet

using kinglet::Get;
using kinglet::Guard;
using kinglet::ReadArray;
using kinglet::RequireLane;
using kinglet::RequirePointer;
using kinglet::Status;
using kinglet::With;

kinglet_status kinglet_session_options_init(kinglet_session_options* options,
                                            uint32_t struct_size) {
  return kinglet::InitOptions(__func__, options, struct_size);
}

kinglet_status kinglet_session_create(const kinglet_model* model,
                                      const kinglet_session_options* options,
                                      kinglet_session** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const kinglet::SessionOptions session_options,
                             kinglet::ReadSessionOptions(function, options));
    return kinglet::Publish(kinglet::Session::Create(model->model, session_options), out);
  });
}

void kinglet_session_destroy(kinglet_session* session) { kinglet::Destroy(session); }

kinglet_status kinglet_session_lanes(const kinglet_session* session, uint32_t* out) {
  return Get(__func__, "session", session, out, [&] { return session->session->lanes(); });
}

kinglet_status kinglet_session_step(kinglet_session* session, uint32_t lane, uint32_t id) {
  return With(__func__, "session", session, [&] { return session->session->StepToken(id, lane); });
}

kinglet_status kinglet_session_step_lanes(kinglet_session* session, const uint32_t* lanes,
                                          const uint32_t* ids, uint64_t count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    if (count == 0) return Status();
    KINGLET_ASSIGN_OR_RETURN(const auto stepped, ReadArray(function, "lanes", lanes, count));
    KINGLET_ASSIGN_OR_RETURN(const auto tokens, ReadArray(function, "ids", ids, count));
    return session->session->StepLanes(stepped, tokens);
  });
}

kinglet_status kinglet_session_step_many(kinglet_session* session, uint32_t lane,
                                         const uint32_t* ids, uint64_t count,
                                         double* log_probabilities, uint64_t* processed) {
  const char* const function = __func__;
  uint64_t done = 0;
  const kinglet_status status = Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto tokens, ReadArray(function, "ids", ids, count));
    const std::span<double> out(log_probabilities,
                                log_probabilities == nullptr ? 0 : tokens.size());
    return session->session->StepMany(tokens, out, done, lane);
  });
  if (processed != nullptr) *processed = done;
  return status;
}

kinglet_status kinglet_session_reset(kinglet_session* session, uint32_t lane) {
  return With(__func__, "session", session, [&] { return session->session->Reset(lane); });
}

kinglet_status kinglet_session_position(const kinglet_session* session, uint32_t lane,
                                        uint64_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequireLane(function, session, lane));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    *out = session->session->position(lane);
    return Status();
  });
}

kinglet_status kinglet_session_fork(kinglet_session* session, uint32_t from, uint32_t to) {
  return With(__func__, "session", session, [&] { return session->session->Fork(from, to); });
}

kinglet_status kinglet_session_cancel(kinglet_session* session) {
  return With(__func__, "session", session, [&] {
    session->session->Cancel();
    return Status();
  });
}
