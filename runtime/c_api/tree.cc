// Sequences with shared beginnings, through the C interface.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/prefix_tree.h"

using kinglet::Guard;
using kinglet::RequirePointer;
using kinglet::Status;

static_assert(KINGLET_NO_PARENT == kinglet::kNoParent);

kinglet_status kinglet_session_score_tree(kinglet_session* session, const uint32_t* parents,
                                          const uint32_t* ids, uint64_t count, double* out,
                                          uint64_t* stepped) {
  const char* const function = __func__;
  // Trees are searched by beams, for which a small library has no room (docs/INSTALL.md).
  if constexpr (kinglet::kSmallBuild) return kinglet::WithoutPart(function, "beams");
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    if (count > 0) {
      KINGLET_RETURN_IF_ERROR(RequirePointer(function, "parents", parents));
      KINGLET_RETURN_IF_ERROR(RequirePointer(function, "ids", ids));
      KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    }
    KINGLET_ASSIGN_OR_RETURN(const size_t n,
                             kinglet::ReadCount(function, "count", count, sizeof *out));
    std::vector<double> values(n);
    KINGLET_ASSIGN_OR_RETURN(const uint64_t tokens,
                             kinglet::ScoreTree({parents, n}, {ids, n}, *session->session, values));
    std::copy(values.begin(), values.end(), out);
    if (stepped != nullptr) *stepped = tokens;
    return Status();
  });
}
