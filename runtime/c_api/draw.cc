// Drawing tokens at random through the C interface.
#include <cstdint>
#include <vector>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/queries/draw_options.h"

namespace kinglet {
Result<DrawOptions> ReadDrawOptions(const char* function, const kinglet_draw_options* given) {
  DrawOptions result;
  if (given == nullptr) return result;
  KINGLET_ASSIGN_OR_RETURN(const kinglet_draw_options options,
                           ReadOptions(function, given, uint32_t{sizeof(kinglet_draw_options)}));
  KINGLET_ASSIGN_OR_RETURN(const auto excluded, ReadArray(function, "excluded", options.excluded,
                                                          options.excluded_count));
  result.temperature = options.temperature;
  result.top_k = options.top_k;
  result.top_p = options.top_p;
  result.excluded.assign(excluded.begin(), excluded.end());
  return result;
}

}  // namespace kinglet

using kinglet::Guard;
using kinglet::ReadArray;
using kinglet::Status;

kinglet_status kinglet_draw_options_init(kinglet_draw_options* options, uint32_t struct_size) {
  const kinglet_status zeroed = kinglet::InitOptions(__func__, options, struct_size);
  if (zeroed != KINGLET_OK || struct_size < sizeof *options) return zeroed;
  options->temperature = 1;
  options->top_p = 1;
  return KINGLET_OK;
}

kinglet_status kinglet_session_draw(kinglet_session* session, uint32_t lane, uint64_t seed,
                                    const kinglet_draw_options* options, uint32_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(kinglet::RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(kinglet::RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const auto read, kinglet::ReadDrawOptions(function, options));
    return session->session->DrawLanes({&lane, 1}, {&seed, 1}, read, {out, 1});
  });
}

kinglet_status kinglet_session_draw_lanes(kinglet_session* session, const uint32_t* lanes,
                                          const uint64_t* seeds, uint64_t count,
                                          const kinglet_draw_options* options, uint32_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(kinglet::RequirePointer(function, "session", session));
    KINGLET_ASSIGN_OR_RETURN(const auto queried, ReadArray(function, "lanes", lanes, count));
    KINGLET_ASSIGN_OR_RETURN(const auto draws, ReadArray(function, "seeds", seeds, count));
    KINGLET_ASSIGN_OR_RETURN(const auto answers, ReadArray(function, "out", out, count));
    KINGLET_ASSIGN_OR_RETURN(const auto read, kinglet::ReadDrawOptions(function, options));
    return session->session->DrawLanes(queried, draws, read, answers);
  });
}
