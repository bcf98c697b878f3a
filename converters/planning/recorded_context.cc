#include "converters/planning/recorded_context.h"

#include <algorithm>
#include <utility>

namespace kinglet {

std::byte* RecordedContext::Add() {
  const uint64_t within = tokens_ % EachBlock();
  if (within == 0) blocks_.push_back(std::make_unique<std::byte[]>(EachBlock() * Size()));
  ++tokens_;
  return blocks_.back().get() + within * Size();
}

std::span<const std::byte> RecordedContext::At(uint64_t token) const {
  return {blocks_[token / EachBlock()].get() + token % EachBlock() * Size(), cut_.kept_bytes};
}

ContextRecorder::ContextRecorder(const Model& model, std::span<const std::vector<WeightId>> changed,
                                 uint64_t most_bytes)
    : plan_(&model.plan()),
      layout_(&model.layout()),
      real_bytes_(model.backend().real_bytes),
      most_bytes_(most_bytes) {
  if (plan_->encoder || model.device() != nullptr) return;
  for (const std::vector<WeightId>& weights : changed) {
    PartialContext cut = MakePartialContext(*plan_, *layout_, real_bytes_, weights);
    size_t run = 0;
    for (const PartialContext::Run& part : cut.runs) run += part.end - part.begin;
    const bool is_there =
        std::any_of(cuts_.begin(), cuts_.end(),
                    [&](const RecordedContext& other) { return other.cut() == cut; });
    if (run < plan_->context.end - plan_->context.begin && !is_there)
      cuts_.emplace_back(std::move(cut));
  }
}

void ContextRecorder::Watch(Session& session) {
  if (cuts_.empty()) return;
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
    now_.clear();
    for (RecordedContext& cut : cuts_) now_.push_back(cut.Add());
  }
  for (size_t i = 0; i < cuts_.size(); ++i) {
    const PartialContext& cut = cuts_[i].cut();
    for (size_t run = 0; run < cut.runs.size(); ++run) {
      if (cut.runs[run].begin == index) CopyKept(cut, run, *layout_, frame, now_[i]);
    }
  }
}

void ContextRecorder::After(const Node& node, const StreamFrame& frame) {
  if (&node - plan_->nodes.data() + 1 != static_cast<ptrdiff_t>(plan_->context.end)) return;
  for (size_t i = 0; i < cuts_.size(); ++i) {
    CopyKept(cuts_[i].cut(), cuts_[i].cut().runs.size(), *layout_, frame, now_[i]);
  }
}

void ContextRecorder::KeepWithinMemory() {
  const auto less = [](const RecordedContext& a, const RecordedContext& b) {
    return a.bytes() < b.bytes();
  };
  for (;;) {
    uint64_t bytes = 0;
    for (const RecordedContext& cut : cuts_) bytes += cut.bytes();
    if (bytes <= most_bytes_) return;
    cuts_.erase(std::max_element(cuts_.begin(), cuts_.end(), less));
  }
}

const RecordedContext* ContextRecorder::Find(std::span<const WeightId> changed) const {
  if (cuts_.empty()) return nullptr;
  const PartialContext wanted = MakePartialContext(*plan_, *layout_, real_bytes_, changed);
  const auto found = std::find_if(cuts_.begin(), cuts_.end(),
                                  [&](const RecordedContext& cut) { return cut.cut() == wanted; });
  return found == cuts_.end() ? nullptr : &*found;
}

}  // namespace kinglet
