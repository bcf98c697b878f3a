// How norms, activation functions, Quantise, Add, AddScalar and Join become device nodes
// (vectors.h).
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Nodes BindOp(const LayerNorm& op, Binder& binder) {
  NormaliseVector node{};
  node.x = binder.At(op.x);
  node.y = binder.At(op.y);
  node.count = binder.Count(op.x);
  KINGLET_ASSIGN_OR_RETURN(node.gain, binder.weights.Floats(op.gain));
  KINGLET_ASSIGN_OR_RETURN(node.bias, binder.weights.Floats(op.bias));
  node.epsilon = static_cast<float>(op.epsilon);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const RootMeanSquareNorm& op, Binder& binder) {
  ScaleToUnitMeanSquare node{};
  node.x = binder.At(op.x);
  node.y = binder.At(op.y);
  node.count = binder.Count(op.x);
  node.epsilon = static_cast<float>(op.epsilon);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const ApplyActivation& op, Binder& binder) {
  ActivateVector node{};
  node.x = binder.At(op.x);
  node.count = binder.Count(op.x);
  node.activation = op.activation;
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const Quantise& op, Binder& binder) {
  const ActivationQuantiser& quantiser = *binder.plan.buffer(op.codes).quantiser;
  QuantiseVector node{};
  node.x = binder.At(op.x);
  node.codes = binder.At(op.codes);
  node.count = binder.Count(op.x);
  node.rounding = {quantiser.max_abs, quantiser.scale};
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const Add& op, Binder& binder) {
  AddVector node{};
  node.x = binder.VectorOf(op.x);
  node.x.count = binder.Count(op.y);
  node.y = binder.At(op.y);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const AddScalar& op, Binder& binder) {
  AddOne node{};
  node.x = binder.At(op.x).Plus(op.index * sizeof(float));
  node.y = binder.At(op.y).Plus(op.first * sizeof(float));
  node.count = op.count;
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const Join& op, Binder& binder) {
  std::vector<JoinedPart> parts;
  uint64_t end = 0;
  for (const JoinPart& part : op.parts) {
    end += part.count;
    parts.push_back({binder.At(part.x).Plus(part.first * sizeof(float)), part.count, end});
  }
  JoinVectors node{};
  node.count = binder.Count(op.y);
  KINGLET_ASSIGN_OR_RETURN(node.parts,
                           binder.weights.Constants(std::span<const JoinedPart>(parts)));
  node.part_count = static_cast<uint32_t>(parts.size());
  node.y = binder.At(op.y);
  return std::vector<Node>{MakeNode(node)};
}

}  // namespace kinglet::cuda
