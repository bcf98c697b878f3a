// How BagAppend, BagFeatures and ScaleShiftRelu become device steps (bag.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

Bag BagOf(const Binder& binder, BufferId sum, BufferId words,
          const std::optional<BufferId>& largest) {
  Bag bag{};
  bag.sum = binder.At(sum);
  bag.words = binder.At(words);
  bag.has_largest = largest.has_value();
  if (largest) bag.largest = binder.At(*largest);
  bag.count = binder.Count(sum);
  return bag;
}

}  // namespace

Steps BindOp(const BagAppend& op, Binder& binder) {
  AppendToBag step{};
  step.embedded = binder.At(op.embedded);
  step.bag = BagOf(binder, op.sum, op.words, op.largest);
  step.has_padding = op.padding.has_value();
  step.padding = op.padding.value_or(0);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const BagFeatures& op, Binder& binder) {
  FeaturesOfBag step{};
  step.bag = BagOf(binder, op.sum, op.words, op.largest);
  step.out = binder.At(op.out);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const ScaleShiftRelu& op, Binder& binder) {
  ScaleAndRelu step{};
  step.x = binder.At(op.x);
  step.y = binder.At(op.y);
  step.count = binder.Count(op.x);
  KINGLET_ASSIGN_OR_RETURN(step.scale, binder.weights.Reals(op.scale));
  KINGLET_ASSIGN_OR_RETURN(step.shift, binder.weights.Reals(op.shift));
  return std::vector<Step>{MakeStep(step)};
}

}  // namespace kinglet::cuda
