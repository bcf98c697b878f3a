// How AddPositionRow, AddSinusoids, AddQueryBias, StoreRow and LoadRow become device nodes
// (positions.h).
#include "kernels/cuda/positions.h"

#include <span>
#include <vector>

#include "format/encoding.h"
#include "kernels/cuda/bind.h"
#include "kernels/sinusoids.h"

namespace kinglet::cuda {

Nodes BindOp(const AddPositionRow& op, Binder& binder) {
  AddRowOfPosition node{};
  KINGLET_ASSIGN_OR_RETURN(node.table, binder.weights.Floats(op.table));
  node.window = op.window;
  node.count = binder.Count(op.y);
  node.y = binder.At(op.y);
  return std::vector<Node>{MakeNode(node)};
}

// The sinusoids of all positions of the window become a table.
Nodes BindOp(const AddSinusoids& op, Binder& binder) {
  AddRowOfPosition node{};
  node.window = op.window;
  node.count = binder.Count(op.y);
  node.y = binder.At(op.y);
  const std::vector<float> frequencies = DecodedValues(binder.plan.weights[op.frequencies]);
  // x + -0 is x for every x, also for -0.
  std::vector<float> table(uint64_t{op.window} * node.count, -0.0f);
  for (uint32_t row = 0; row < op.window; ++row) {
    AddAbsoluteSinusoids(std::span(frequencies), op.first + row,
                         table.data() + uint64_t{row} * node.count);
  }
  KINGLET_ASSIGN_OR_RETURN(node.table, binder.weights.Constants(std::span<const float>(table)));
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const AddQueryBias& op, Binder& binder) {
  const Shape& shape = binder.plan.weights[op.bias].shape;
  AddToHeads node{};
  KINGLET_ASSIGN_OR_RETURN(node.bias, binder.weights.Floats(op.bias));
  node.heads = static_cast<uint32_t>(Rows(shape));
  node.size = static_cast<uint32_t>(Cols(shape));
  node.stride = binder.Count(op.y) / node.heads;
  node.y = binder.At(op.y);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const StoreRow& op, Binder& binder) {
  return std::vector<Node>{MakeNode(CopyRow{{}, binder.VectorOf(op.x), binder.At(op.rows), true})};
}

Nodes BindOp(const LoadRow& op, Binder& binder) {
  return std::vector<Node>{MakeNode(CopyRow{{}, binder.VectorOf(op.x), binder.At(op.rows), false})};
}

}  // namespace kinglet::cuda
