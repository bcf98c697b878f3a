#include "runtime/typing/session_predictor.h"

namespace kinglet::typing {

void SessionPredictor::Use(Session& session, uint32_t lane) {
  session_ = &session;
  lane_ = lane;
}

}  // namespace kinglet::typing
