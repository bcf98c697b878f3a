#include "runtime/typing/session_predictor.h"

#include <utility>

namespace kinglet::typing {

void SessionPredictor::Use(Session& session, uint32_t lane) {
  session_ = &session;
  lane_ = lane;
}

Status SessionPredictor::After(uint32_t id, std::span<float> out) {
  KINGLET_RETURN_IF_ERROR(TakeCancellation());
  if (!state_ || state_version_ != version()) {
    state_.reset();
    KINGLET_ASSIGN_OR_RETURN(State state, session_->Save(lane_));
    state_ = std::move(state);
    state_version_ = version();
  }
  if (stream_ == nullptr ||
      stream_->empty_cache_is_normalised() != session_->empty_cache_is_normalised()) {
    KINGLET_ASSIGN_OR_RETURN(stream_, session_->CreateAlike(1));
  }
  KINGLET_RETURN_IF_ERROR(stream_->Restore(*state_));
  KINGLET_RETURN_IF_ERROR(stream_->StepToken(id));
  return stream_->LogProbabilities(out);
}

}  // namespace kinglet::typing
