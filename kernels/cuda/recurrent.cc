// How the element-wise halves of recurrent cells become device nodes (recurrent.h).
#include "kernels/cuda/recurrent.h"

#include <cstdint>
#include <set>
#include <variant>
#include <vector>

#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

// The vectors that all cells have in common.
template <class Cell, class Op>
Cell CellOf(const Op& op, const Binder& binder) {
  Cell node{};
  node.input = binder.At(op.input);
  node.hidden = binder.At(op.hidden);
  node.count = binder.Count(op.hidden);
  return node;
}

// Finds the state that a token reads before it writes it, so that the first token of a stream would
// read what an earlier stream left. What an encoder writes is not that.
class LeftByTokenBefore {
 public:
  explicit LeftByTokenBefore(const Plan& plan) : plan_(plan) {
    for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
      if (!KnowsPosition(plan.nodes[i].op)) VisitOperands(plan, plan.nodes[i].op, *this);
    }
  }
  const std::vector<BufferId>& buffers() const { return buffers_; }

  // --- for VisitOperands
  void Reads(BufferId id) {
    const BufferSpec& buffer = plan_.buffer(id);
    const bool by_encoder = buffer.ring.of_source || buffer.ring.by_encoder;
    if (buffer.state && !by_encoder && seen_.insert(id).second) buffers_.push_back(id);
  }
  void Writes(BufferId id) { seen_.insert(id); }
  void Weight(WeightId) {}
  void Codes(WeightId) {}

 private:
  // Whether the operation reads only state that the lane's position allows.
  static bool KnowsPosition(const Op& op) {
    return std::holds_alternative<WindowAttention>(op) || std::holds_alternative<CacheAppend>(op) ||
           std::holds_alternative<BagAppend>(op);
  }

  const Plan& plan_;
  std::set<BufferId> seen_;
  std::vector<BufferId> buffers_;
};

}  // namespace

Nodes BindClearForFirstToken(Binder& binder) {
  std::vector<StateWords> vectors;
  const LeftByTokenBefore left(binder.plan);
  for (const BufferId id : left.buffers()) {
    const uint64_t bytes = BytesOf(binder.plan.buffer(id), binder.Count(id), sizeof(float));
    // Buffers are padded to a multiple of 64 bytes.
    vectors.push_back({binder.At(id).offset, (bytes + 3) / sizeof(uint32_t)});
  }
  if (vectors.empty()) return std::vector<Node>();
  ClearForFirstToken node{};
  KINGLET_ASSIGN_OR_RETURN(node.vectors,
                           binder.weights.Constants(std::span<const StateWords>(vectors)));
  node.count = static_cast<uint32_t>(vectors.size());
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const LstmGates& op, Binder& binder) {
  auto node = CellOf<LstmCell>(op, binder);
  node.recurrent = binder.At(op.recurrent);
  node.cell = binder.At(op.cell);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const GruGates& op, Binder& binder) {
  auto node = CellOf<GruCell>(op, binder);
  node.recurrent = binder.At(op.recurrent);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const RnnGates& op, Binder& binder) {
  auto node = CellOf<RnnCell>(op, binder);
  node.recurrent = binder.At(op.recurrent);
  node.relu = op.relu;
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const QrnnGates& op, Binder& binder) {
  auto node = CellOf<QrnnCell>(op, binder);
  node.has_previous = op.previous.has_value();
  if (op.previous) node.recurrent = binder.At(*op.previous);
  node.cell = binder.At(op.cell);
  return std::vector<Node>{MakeNode(node)};
}

}  // namespace kinglet::cuda
