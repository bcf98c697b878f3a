// How BagAppend, BagFeatures and ScaleShiftRelu become device nodes (bag.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

Bag BagOf(const Binder& binder, BufferId sum, BufferId added,
          const std::optional<BufferId>& largest) {
  Bag bag{};
  bag.sum = binder.At(sum);
  bag.added = binder.At(added);
  bag.has_largest = largest.has_value();
  if (largest) bag.largest = binder.At(*largest);
  bag.count = binder.Count(sum);
  return bag;
}

}  // namespace

Nodes BindOp(const BagAppend& op, Binder& binder) {
  AppendToBag node{};
  node.embedded = binder.At(op.embedded);
  node.bag = BagOf(binder, op.sum, op.count, op.largest);
  node.has_padding = op.padding.has_value();
  node.padding = op.padding.value_or(0);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const BagFeatures& op, Binder& binder) {
  FeaturesOfBag node{};
  node.bag = BagOf(binder, op.sum, op.count, op.largest);
  node.out = binder.At(op.out);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const ScaleShiftRelu& op, Binder& binder) {
  ScaleAndRelu node{};
  node.x = binder.At(op.x);
  node.y = binder.At(op.y);
  node.count = binder.Count(op.x);
  KINGLET_ASSIGN_OR_RETURN(node.scale, binder.weights.Floats(op.scale));
  KINGLET_ASSIGN_OR_RETURN(node.shift, binder.weights.Floats(op.shift));
  return std::vector<Node>{MakeNode(node)};
}

}  // namespace kinglet::cuda
