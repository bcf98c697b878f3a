// What the C interface's handles point to, and what is asked of them everywhere.
#ifndef KINGLET_RUNTIME_C_API_HANDLES_H_
#define KINGLET_RUNTIME_C_API_HANDLES_H_

#include <memory>
#include <string>

#include "kinglet/kinglet.h"
#include "runtime/c_api/guard.h"
#include "runtime/embedder.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "runtime/state.h"

struct kinglet_model {
  std::shared_ptr<const kinglet::Model> model;
};

struct kinglet_session {
  std::unique_ptr<kinglet::Session> session;
};

struct kinglet_embedding {
  std::unique_ptr<kinglet::Embedder> embedder;
};

struct kinglet_state {
  kinglet::State state;
};

namespace kinglet {

inline Status RequireLane(const char* function, const kinglet_session* session, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  const uint32_t lanes = session->session->lanes();
  if (lane < lanes) return Status();
  return Invalid(function, "lane", "a number below " + std::to_string(lanes), std::to_string(lane));
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_C_API_HANDLES_H_
