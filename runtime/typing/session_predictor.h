// A lane of a session as what predicts the next word of a keyboard.
#ifndef KINGLET_RUNTIME_TYPING_SESSION_PREDICTOR_H_
#define KINGLET_RUNTIME_TYPING_SESSION_PREDICTOR_H_

#include <cstdint>
#include <span>

#include "runtime/session.h"
#include "runtime/typing/decoder.h"

namespace kinglet::typing {

// Asks a lane, whose stream is the same afterwards. Used by the thread that uses the session.
class SessionPredictor : public WordPredictor {
 public:
  // The lane to ask from now on. REQUIRES: the lane exists and has processed a token, and the
  // session lives while the predictor is used for it.
  void Use(Session& session, uint32_t lane);

  uint64_t version() const override { return session_->version(lane_); }
  Status Next(std::span<float> out) override { return session_->LogProbabilities(out, lane_); }
  Status After(std::span<const uint32_t> ids, std::span<float> out) override {
    return session_->LogProbabilitiesAfter(ids, out, lane_);
  }
  Status TakeCancellation() override { return session_->TakeCancellation("typing"); }

 private:
  Session* session_ = nullptr;
  uint32_t lane_ = 0;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_SESSION_PREDICTOR_H_
