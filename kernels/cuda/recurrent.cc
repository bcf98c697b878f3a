// How the element-wise halves of recurrent cells become device nodes (recurrent.h).
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

}  // namespace

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
