#include "kernels/cuda/bind_text.h"

#include <set>
#include <variant>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda {
namespace {

// Looks for what keeps tokens from running together.
class Dependences {
 public:
  explicit Dependences(const Plan& plan) : plan_(plan) {
    found_ =
        plan.encoder || plan.reading || plan.classifier || plan.clusters.empty() || KeepsRows(plan);
    for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
      const Op& op = plan.nodes[i].op;
      if (std::holds_alternative<CacheAppend>(op)) continue;
      if (const auto* const attention = std::get_if<WindowAttention>(&op)) {
        found_ = found_ || attention->restarts || attention->masked;
        continue;
      }
      VisitOperands(plan, op, *this);
    }
  }
  bool found() const { return found_; }

  // --- for VisitOperands
  void Reads(BufferId id) {
    if (plan_.buffer(id).state && written_.count(id) == 0) found_ = true;
  }
  void Writes(BufferId id) {
    if (plan_.buffer(id).state && !plan_.buffer(id).ring.IsWhole()) found_ = true;
    written_.insert(id);
  }
  void Weight(WeightId) {}
  void Codes(WeightId) {}

 private:
  const Plan& plan_;
  std::set<BufferId> written_;
  bool found_ = false;
};

}  // namespace

std::optional<Plan> TextPlanOf(const Plan& plan, uint32_t tokens) {
  if (Dependences(plan).found()) return std::nullopt;
  Plan text = plan;
  for (BufferSpec& buffer : text.buffers) {
    if (!buffer.state) continue;
    if (buffer.ring.IsWhole()) {
      buffer.state = false;
      continue;
    }
    buffer.count += buffer.count / buffer.ring.slots * tokens;
    buffer.ring.slots += tokens;
  }
  return text;
}

std::vector<Node> WithStores(const std::vector<Node>& nodes, uint64_t most_shared_bytes) {
  std::vector<Node> stored;
  for (Node node : nodes) {
    if (IsKind<AttendTokens>(node)) {
      auto together = ArgumentsOf<AttendTokens>(node);
      stored.push_back(MakeNode(StoreOwnRow{{}, together.attention}));
      // With a window of one token each token has a ring of its own.
      if (together.attention.ring > together.attention.window) together.tokens = kTileStreams;
      while (together.SharedBytes() > most_shared_bytes) together.tokens /= 2;
      node = MakeNode(together);
    } else if (IsKind<ScoreSlots>(node)) {
      stored.push_back(MakeNode(StoreOwnRow{{}, ArgumentsOf<ScoreSlots>(node).attention}));
    }
    stored.push_back(node);
  }
  return stored;
}

std::vector<MovedState> MovedStates(const Plan& plan, const BufferLayout& layout,
                                    const BufferLayout& of_text) {
  std::vector<MovedState> moved;
  for (const StateRegion& region : layout.state_regions) {
    const bool is_vector = plan.buffer(region.buffer).ring.IsWhole();
    const auto slots = static_cast<uint32_t>(region.ring.slots);
    const Slot& text = of_text[region.buffer];
    uint32_t text_slots = 1;
    for (const StateRegion& other : of_text.state_regions) {
      if (other.buffer == region.buffer) text_slots = static_cast<uint32_t>(other.ring.slots);
    }
    moved.push_back({region.offset, text.offset, region.slot_bytes, region.ring.lag, slots,
                     text_slots, is_vector});
  }
  return moved;
}

}  // namespace kinglet::cuda
