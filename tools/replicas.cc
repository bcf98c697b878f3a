#include "tools/replicas.h"

#include <algorithm>
#include <numeric>

namespace kinglet {

Replicas::Replicas(std::unique_ptr<Session> session)
    : session_(std::move(session)),
      lanes_(session_->lanes()),
      ids_(lanes_.size()),
      answers_(lanes_.size()) {
  std::iota(lanes_.begin(), lanes_.end(), 0U);
}

Result<Replicas> Replicas::Create(const std::shared_ptr<const Model>& model, SessionOptions options,
                                  size_t lanes, size_t threads) {
  options.lanes = static_cast<uint32_t>(lanes);
  options.threads = static_cast<uint32_t>(threads);
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model, options));
  return Replicas(std::move(session));
}

Status Replicas::Step(uint32_t id) {
  std::fill(ids_.begin(), ids_.end(), id);
  return session_->StepLanes(lanes_, ids_);
}

Status Replicas::Reset() {
  for (const uint32_t lane : lanes_) KINGLET_RETURN_IF_ERROR(session_->Reset(lane));
  return Status();
}

Result<double> Replicas::LogProbability(uint32_t id, uint64_t position) {
  std::fill(ids_.begin(), ids_.end(), id);
  KINGLET_RETURN_IF_ERROR(session_->LogProbabilityLanes(lanes_, ids_, answers_));
  for (size_t lane = 1; lane < answers_.size(); ++lane) {
    if (!SameBits(answers_[0], answers_[lane])) return Mismatch(position, lane);
  }
  return answers_[0];
}

Status Replicas::Score(std::span<const uint32_t> ids, uint64_t position, std::span<double> out,
                       uint64_t& processed) {
  if (lanes_.size() == 1) return session_->StepMany(ids, out, processed);
  for (processed = 0; processed < ids.size(); ++processed) {
    if (session_->position() > 0) {
      KINGLET_ASSIGN_OR_RETURN(
          out[processed],
          LogProbability(session_->model().TokenOf(ids[processed]), position + processed));
    }
    KINGLET_RETURN_IF_ERROR(Step(ids[processed]));
  }
  return Status();
}

Status Replicas::Mismatch(uint64_t position, size_t lane) {
  return Status::Refusal(KINGLET_MISMATCH, "lanes", "position " + std::to_string(position),
                         "the same bits from every lane",
                         "lane " + std::to_string(lane) + " differs from lane 0");
}

}  // namespace kinglet
