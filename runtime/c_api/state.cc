// States through the C interface.
#include "runtime/state.h"

#include <cstddef>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

using kinglet::Get;
using kinglet::Guard;
using kinglet::Publish;
using kinglet::RequirePointer;
using kinglet::State;
using kinglet::Status;

kinglet_status kinglet_session_save(kinglet_session* session, uint32_t lane, kinglet_state** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    return Publish(session->session->Save(lane), out);
  });
}

kinglet_status kinglet_session_restore(kinglet_session* session, uint32_t lane,
                                       const kinglet_state* state) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "state", state));
    return session->session->Restore(state->state, lane);
  });
}

void kinglet_state_destroy(kinglet_state* state) { kinglet::Destroy(state); }

kinglet_status kinglet_state_position(const kinglet_state* state, uint64_t* out) {
  return Get(__func__, "state", state, out, [&] { return state->state.position(); });
}

kinglet_status kinglet_state_equal(const kinglet_state* a, const kinglet_state* b, int32_t* out) {
  const char* const function = __func__;
  return Get(function, "a", a, out, [&]() -> kinglet::Result<int32_t> {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "b", b));
    return a->state == b->state;
  });
}

kinglet_status kinglet_state_hash(const kinglet_state* state, uint64_t* out) {
  return Get(__func__, "state", state, out, [&] { return state->state.Hash(); });
}

kinglet_status kinglet_state_bytes(const kinglet_state* state, uint64_t* out) {
  return Get(__func__, "state", state, out, [&] { return state->state.BlobBytes(); });
}

kinglet_status kinglet_state_write(const kinglet_state* state, void* buffer, uint64_t capacity,
                                   uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "state", state));
    const uint64_t size = state->state.BlobBytes();
    KINGLET_ASSIGN_OR_RETURN(const bool is_wanted,
                             kinglet::PrepareBuffer(function, size, buffer, capacity, needed));
    if (is_wanted) {
      state->state.WriteBlob({static_cast<std::byte*>(buffer), static_cast<size_t>(size)});
    }
    return Status();
  });
}

kinglet_status kinglet_state_read(const kinglet_model* model, const void* bytes, uint64_t size,
                                  kinglet_state** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "bytes", bytes));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const size_t n, kinglet::ReadCount(function, "size", size, 1));
    return Publish(State::ReadBlob(model->model, {static_cast<const std::byte*>(bytes), n}), out);
  });
}
