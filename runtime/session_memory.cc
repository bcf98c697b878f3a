// How much of the host's memory a session's lanes take, and which part of it they share.
#include <algorithm>

#include "runtime/session_contents.h"

namespace kinglet {
namespace {

uint64_t QueryBytes(const Model& model) {
  return model.backend().real_bytes == sizeof(double) ? QueryMemory<double>::BytesPerStream(model)
                                                      : QueryMemory<float>::BytesPerStream(model);
}

}  // namespace

size_t SourceTokensTogether(const Model& model) {
  // As many vectors as one call of a matrix product takes, in memory that fits a processor cache.
  constexpr uint64_t kMost = 128, kMostBytes = uint64_t{16} << 20;
  const std::optional<EncoderPlan>& encoder = model.plan().encoder;
  // A recurrent encoder has no buffers of single tokens; its nodes run on one token at a time.
  if (!encoder || model.device() != nullptr || model.layout().source_token_bytes == 0) return 0;
  const uint64_t tokens = kMostBytes / std::max<uint64_t>(model.layout().source_token_bytes, 1);
  return std::clamp<uint64_t>(tokens, 1, std::min<uint64_t>(encoder->window, kMost));
}

uint64_t Session::BytesPerLane(const Model& model) {
  return sizeof(Lane) + Stream::Bytes(model) + QueryBytes(model);
}

Session::MemoryPlan Session::MemoryPlan::Of(const Model& model, uint64_t lanes) {
  using Queries = Stream::Queries;
  using States = QueryFrames::States;
  const uint64_t together = std::min<uint64_t>(lanes, kLanesTogether);
  if (model.device() != nullptr) {
    const uint64_t each = sizeof(Lane) + Stream::Bytes(model, Queries::kShared);
    return {Queries::kShared, States::kInPlaces, together, each, together * QueryBytes(model)};
  }
  const MemoryPlan own = {Queries::kOwn, States::kInFrames, 0, BytesPerLane(model), 0};
  if (lanes <= kLanesTogether) return own;
  const uint64_t place = QueryFrames::BytesPerPlace(model.layout(), States::kInFrames);
  const MemoryPlan shared = {Queries::kShared, States::kInFrames, together,
                             sizeof(Lane) + Stream::Bytes(model, Queries::kShared),
                             together * (place + QueryBytes(model))};
  const uint64_t saved = own.each - shared.each;
  return saved > 0 && shared.shared / saved < lanes ? shared : own;
}

uint64_t Session::LanesRemembered(const Model& model, uint64_t lanes) {
  const MemoryPlan plan = MemoryPlan::Of(model, lanes);
  return plan.places > 0 ? plan.places : lanes;
}

uint64_t Session::LanesThatFit(const Model& model, uint64_t bytes) {
  const uint64_t few = bytes / BytesPerLane(model);
  const MemoryPlan of_many = MemoryPlan::Of(model, UINT32_MAX);
  const uint64_t many = bytes > of_many.shared ? (bytes - of_many.shared) / of_many.each : 0;
  return MemoryPlan::Of(model, many).queries == of_many.queries ? std::max(few, many) : few;
}

}  // namespace kinglet
