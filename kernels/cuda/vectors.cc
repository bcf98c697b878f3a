// How norms, activation functions, Quantise, Add and AddScalar become device steps (vectors.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Steps BindOp(const LayerNorm& op, Binder& binder) {
  NormaliseVector step{};
  step.x = binder.At(op.x);
  step.y = binder.At(op.y);
  step.count = binder.Count(op.x);
  KINGLET_ASSIGN_OR_RETURN(step.gain, binder.weights.Reals(op.gain));
  KINGLET_ASSIGN_OR_RETURN(step.bias, binder.weights.Reals(op.bias));
  step.epsilon = static_cast<float>(op.epsilon);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const RootMeanSquareNorm& op, Binder& binder) {
  ScaleToUnitMeanSquare step{};
  step.x = binder.At(op.x);
  step.y = binder.At(op.y);
  step.count = binder.Count(op.x);
  step.epsilon = static_cast<float>(op.epsilon);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const ApplyActivation& op, Binder& binder) {
  ActivateVector step{};
  step.x = binder.At(op.x);
  step.count = binder.Count(op.x);
  step.activation = op.activation;
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const Quantise& op, Binder& binder) {
  const ActivationQuantiser& quantiser = *binder.plan.buffer(op.codes).quantiser;
  QuantiseVector step{};
  step.x = binder.At(op.x);
  step.codes = binder.At(op.codes);
  step.count = binder.Count(op.x);
  step.rounding = {quantiser.max_abs, quantiser.step};
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const Add& op, Binder& binder) {
  AddVector step{};
  step.x = binder.VectorOf(op.x);
  step.x.count = binder.Count(op.y);
  step.y = binder.At(op.y);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const AddScalar& op, Binder& binder) {
  AddOne step{};
  step.x = binder.At(op.x).Plus(op.index * sizeof(float));
  step.y = binder.At(op.y).Plus(op.first * sizeof(float));
  step.count = op.count;
  return std::vector<Step>{MakeStep(step)};
}

}  // namespace kinglet::cuda
