// Masked models through the C interface: reading a complete text, and its pooled vector and scores.
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/reading_widths.h"

namespace kinglet {
namespace {

using WidthOf = uint32_t(const Plan&);

// A caller's array, in which as many elements as the model's width are to be written.
// KINGLET_BUFFER_TOO_SMALL if it has less room.
Result<std::span<double>> ReadArrayOfWidth(const char* function, const kinglet_session* session,
                                           WidthOf* width, double* out, uint64_t capacity) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
  const uint32_t count = width(session->session->model().plan());
  KINGLET_RETURN_IF_ERROR(RequireCapacity(function, count, capacity));
  return std::span<double>(out, count);
}

}  // namespace
}  // namespace kinglet

using kinglet::Get;
using kinglet::Guard;
using kinglet::PooledWidth;
using kinglet::ReadArrayOfWidth;
using kinglet::RequirePointer;
using kinglet::ScoreCount;
using kinglet::Status;
using kinglet::With;

kinglet_status kinglet_model_pooled_width(const kinglet_model* model, uint32_t* out) {
  return Get(__func__, "model", model, out, [&] { return PooledWidth(model->model->plan()); });
}

kinglet_status kinglet_model_score_count(const kinglet_model* model, uint32_t* out) {
  return Get(__func__, "model", model, out, [&] { return ScoreCount(model->model->plan()); });
}

kinglet_status kinglet_session_read(kinglet_session* session, uint32_t lane, const uint32_t* ids,
                                    const uint32_t* segments, uint64_t count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "ids", ids));
    KINGLET_ASSIGN_OR_RETURN(const size_t n,
                             kinglet::ReadCount(function, "count", count, sizeof *ids));
    if (!session->session->model().plan().reading) {
      return Status::Refusal(KINGLET_UNSUPPORTED, function, "model",
                             "a masked model, which reads whole texts", "another");
    }
    const size_t segment_count = segments == nullptr ? 0 : n;
    return session->session->Encode({ids, n}, {segments, segment_count}, lane);
  });
}

kinglet_status kinglet_session_look_at(kinglet_session* session, uint32_t lane, uint64_t position) {
  return With(__func__, "session", session,
              [&] { return session->session->LookAt(position, lane); });
}

kinglet_status kinglet_session_pooled(kinglet_session* session, uint32_t lane, double* out,
                                      uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const std::span<double> pooled,
                             ReadArrayOfWidth(function, session, PooledWidth, out, capacity));
    return session->session->Pooled(pooled, lane);
  });
}

kinglet_status kinglet_session_scores(kinglet_session* session, uint32_t lane, uint64_t position,
                                      double* out, uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const std::span<double> scores,
                             ReadArrayOfWidth(function, session, ScoreCount, out, capacity));
    return session->session->Scores(scores, position, lane);
  });
}
