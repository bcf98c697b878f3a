// How the element-wise halves of recurrent cells become steps (recurrent.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Steps BindOp(const LstmGates& op, Binder& binder) {
  LstmCell step{};
  step.input = binder.At(op.input);
  step.recurrent = binder.At(op.recurrent);
  step.cell = binder.At(op.cell);
  step.hidden = binder.At(op.hidden);
  step.count = binder.Count(op.hidden);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const GruGates& op, Binder& binder) {
  GruCell step{};
  step.input = binder.At(op.input);
  step.recurrent = binder.At(op.recurrent);
  step.hidden = binder.At(op.hidden);
  step.count = binder.Count(op.hidden);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const RnnGates& op, Binder& binder) {
  RnnCell step{};
  step.input = binder.At(op.input);
  step.recurrent = binder.At(op.recurrent);
  step.hidden = binder.At(op.hidden);
  step.count = binder.Count(op.hidden);
  step.rectify = op.rectify;
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const QrnnGates& op, Binder& binder) {
  QrnnCell step{};
  step.input = binder.At(op.input);
  step.has_previous = op.previous.has_value();
  if (op.previous) step.recurrent = binder.At(*op.previous);
  step.cell = binder.At(op.cell);
  step.hidden = binder.At(op.hidden);
  step.count = binder.Count(op.hidden);
  return std::vector<Step>{MakeStep(step)};
}

}  // namespace kinglet::cuda
