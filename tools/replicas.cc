#include "tools/replicas.h"

#include <algorithm>

#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr uint64_t kMemoryLimit = uint64_t{4} << 30;

}  // namespace

Result<Replicas> Replicas::Create(const std::shared_ptr<const Model>& model,
                                  const SessionOptions& options, size_t lanes, size_t threads) {
  const uint64_t bytes = model->layout().scratch_bytes + model->layout().state_bytes;
  if (lanes > 1 && bytes > kMemoryLimit / lanes) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "lanes", std::to_string(lanes) + " sessions",
                           "at most " + std::to_string(kMemoryLimit) + " bytes together",
                           std::to_string(bytes) + " bytes each");
  }
  Replicas replicas;
  replicas.threads_ = std::min(threads, lanes);
  SessionOptions each = options;
  each.threads = static_cast<uint32_t>(threads / replicas.threads_);
  for (size_t lane = 0; lane < lanes; ++lane) {
    KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model, each));
    replicas.sessions_.push_back(std::move(session));
  }
  return replicas;
}

void Replicas::ForEachLane(const std::function<void(size_t)>& work) const {
  RunShares(threads_, [&](size_t share) {
    for (size_t lane = share; lane < sessions_.size(); lane += threads_) work(lane);
  });
}

Status Replicas::Mismatch(uint64_t position, size_t lane) {
  return Status::Refusal(KINGLET_MISMATCH, "lanes", "position " + std::to_string(position),
                         "the same bits from every lane",
                         "lane " + std::to_string(lane) + " differs from lane 0");
}

}  // namespace kinglet
