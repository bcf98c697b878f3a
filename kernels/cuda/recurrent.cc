// How the element-wise halves of recurrent cells become device steps (recurrent.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

// The vectors that all cells have in common.
template <class Cell, class Op>
Cell CellOf(const Op& op, const Binder& binder) {
  Cell step{};
  step.input = binder.At(op.input);
  step.hidden = binder.At(op.hidden);
  step.count = binder.Count(op.hidden);
  return step;
}

}  // namespace

Steps BindOp(const LstmGates& op, Binder& binder) {
  auto step = CellOf<LstmCell>(op, binder);
  step.recurrent = binder.At(op.recurrent);
  step.cell = binder.At(op.cell);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const GruGates& op, Binder& binder) {
  auto step = CellOf<GruCell>(op, binder);
  step.recurrent = binder.At(op.recurrent);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const RnnGates& op, Binder& binder) {
  auto step = CellOf<RnnCell>(op, binder);
  step.recurrent = binder.At(op.recurrent);
  step.relu = op.relu;
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const QrnnGates& op, Binder& binder) {
  auto step = CellOf<QrnnCell>(op, binder);
  step.has_previous = op.previous.has_value();
  if (op.previous) step.recurrent = binder.At(*op.previous);
  step.cell = binder.At(op.cell);
  return std::vector<Step>{MakeStep(step)};
}

}  // namespace kinglet::cuda
