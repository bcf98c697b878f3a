// How AddPositionRow, AddSinusoids, AddQueryBias, StoreRow and LoadRow become device steps
// (positions.h).
#include "kernels/cuda/positions.h"

#include <span>
#include <vector>

#include "format/encoding.h"
#include "kernels/cuda/bind.h"
#include "kernels/sinusoids.h"

namespace kinglet::cuda {

Steps BindOp(const AddPositionRow& op, Binder& binder) {
  AddRowOfPosition step{};
  KINGLET_ASSIGN_OR_RETURN(step.table, binder.weights.Reals(op.table));
  step.window = op.window;
  step.count = binder.Count(op.y);
  step.y = binder.At(op.y);
  return std::vector<Step>{MakeStep(step)};
}

// The sinusoids of all positions of the window become a table.
Steps BindOp(const AddSinusoids& op, Binder& binder) {
  AddRowOfPosition step{};
  step.window = op.window;
  step.count = binder.Count(op.y);
  step.y = binder.At(op.y);
  const std::vector<float> frequencies = DecodedValues(binder.plan.weights[op.frequencies]);
  // x + -0 is x for every x, also for -0.
  std::vector<float> table(uint64_t{op.window} * step.count, -0.0f);
  for (uint32_t row = 0; row < op.window; ++row) {
    AddAbsoluteSinusoids(std::span(frequencies), op.first + row,
                         table.data() + uint64_t{row} * step.count);
  }
  KINGLET_ASSIGN_OR_RETURN(step.table, binder.weights.Constants(std::span<const float>(table)));
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const AddQueryBias& op, Binder& binder) {
  const Shape& shape = binder.plan.weights[op.bias].shape;
  AddToHeads step{};
  KINGLET_ASSIGN_OR_RETURN(step.bias, binder.weights.Reals(op.bias));
  step.heads = static_cast<uint32_t>(Rows(shape));
  step.size = static_cast<uint32_t>(Cols(shape));
  step.stride = binder.Count(op.y) / step.heads;
  step.y = binder.At(op.y);
  return std::vector<Step>{MakeStep(step)};
}

Steps BindOp(const StoreRow& op, Binder& binder) {
  return std::vector<Step>{MakeStep(CopyRow{{}, binder.VectorOf(op.x), binder.At(op.rows), true})};
}

Steps BindOp(const LoadRow& op, Binder& binder) {
  return std::vector<Step>{MakeStep(CopyRow{{}, binder.VectorOf(op.x), binder.At(op.rows), false})};
}

}  // namespace kinglet::cuda
