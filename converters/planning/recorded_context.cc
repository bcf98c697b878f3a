#include "converters/planning/recorded_context.h"

#include <algorithm>
#include <utility>

namespace kinglet {

std::byte* RecordedContext::Add() {
  const uint64_t within = tokens_ % TokensPerTile();
  if (within == 0) tiles_.push_back(std::make_unique<std::byte[]>(TokensPerTile() * TokenBytes()));
  ++tokens_;
  return tiles_.back().get() + within * TokenBytes();
}

std::span<const std::byte> RecordedContext::At(uint64_t token) const {
  return {tiles_[token / TokensPerTile()].get() + token % TokensPerTile() * TokenBytes(),
          partial_.kept_bytes};
}

ContextRecorder::ContextRecorder(const Model& model, std::span<const std::vector<WeightId>> changed,
                                 uint64_t most_bytes)
    : plan_(&model.plan()),
      layout_(&model.layout()),
      real_bytes_(model.backend().real_bytes),
      most_bytes_(most_bytes) {
  if (plan_->encoder || model.device() != nullptr) return;
  for (const std::vector<WeightId>& weights : changed) {
    PartialContext partial = MakePartialContext(*plan_, *layout_, real_bytes_, weights);
    size_t run_nodes = 0;
    for (const PartialContext::Run& part : partial.runs) run_nodes += part.end - part.begin;
    const bool is_recorded =
        std::any_of(records_.begin(), records_.end(),
                    [&](const RecordedContext& other) { return other.partial() == partial; });
    if (run_nodes < plan_->context.end - plan_->context.begin && !is_recorded)
      records_.emplace_back(std::move(partial));
  }
}

void ContextRecorder::Watch(Session& session) {
  if (records_.empty()) return;
  session.set_observer([this](const Node& node,
                              std::span<const StreamFrame> frames) { After(node, frames.front()); },
                       [this](const Node& node, std::span<const StreamFrame> frames) {
                         Before(node, frames.front());
                       });
}

void ContextRecorder::Before(const Node& node, const StreamFrame& frame) {
  const auto index = static_cast<size_t>(&node - plan_->nodes.data());
  if (index < plan_->context.begin || index >= plan_->context.end) return;
  if (index == plan_->context.begin) {
    KeepWithinMemory();
    current_.clear();
    for (RecordedContext& record : records_) current_.push_back(record.Add());
  }
  for (size_t i = 0; i < records_.size(); ++i) {
    const PartialContext& partial = records_[i].partial();
    for (size_t run = 0; run < partial.runs.size(); ++run) {
      if (partial.runs[run].begin == index) CopyKept(partial, run, *layout_, frame, current_[i]);
    }
  }
}

void ContextRecorder::After(const Node& node, const StreamFrame& frame) {
  if (&node - plan_->nodes.data() + 1 != static_cast<ptrdiff_t>(plan_->context.end)) return;
  for (size_t i = 0; i < records_.size(); ++i) {
    CopyKept(records_[i].partial(), records_[i].partial().runs.size(), *layout_, frame,
             current_[i]);
  }
}

void ContextRecorder::KeepWithinMemory() {
  const auto less = [](const RecordedContext& a, const RecordedContext& b) {
    return a.bytes() < b.bytes();
  };
  for (;;) {
    uint64_t bytes = 0;
    for (const RecordedContext& record : records_) bytes += record.bytes();
    if (bytes <= most_bytes_) return;
    records_.erase(std::max_element(records_.begin(), records_.end(), less));
  }
}

const RecordedContext* ContextRecorder::Find(std::span<const WeightId> changed) const {
  if (records_.empty()) return nullptr;
  const PartialContext wanted = MakePartialContext(*plan_, *layout_, real_bytes_, changed);
  const auto found =
      std::find_if(records_.begin(), records_.end(),
                   [&](const RecordedContext& record) { return record.partial() == wanted; });
  return found == records_.end() ? nullptr : &*found;
}

}  // namespace kinglet
