// How PartialProducts, CodedSums and CodedProduct become device nodes (coded.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

// Everything but the products of a CodedSums or CodedProduct.
template <class Op>
Status FillSum(const Op& op, const std::vector<uint64_t>& firsts, Binder& binder,
               SumOfCodes& node) {
  KINGLET_ASSIGN_OR_RETURN(node.codes, binder.weights.Codes(op.table));
  KINGLET_ASSIGN_OR_RETURN(node.firsts, binder.weights.NarrowConstants(firsts));
  node.y = binder.At(op.y).Plus(op.y_offset * sizeof(float));
  node.mean = binder.plan.weights[op.table].coded()->scheme.combine == Combine::kMean;
  node.finish.relu = op.relu;
  KINGLET_ASSIGN_OR_RETURN(node.finish.bias, binder.weights.FloatsOrNull(op.bias));
  return {};
}

}  // namespace

Nodes BindOp(const PartialProducts& op, Binder& binder) {
  const TensorView& table = binder.plan.weights[op.table];
  const CodingScheme& scheme = table.coded()->scheme;
  std::vector<Node> nodes;
  const ProductOperand x =
      OperandOf(binder, op.x, op.input, static_cast<uint32_t>(Cols(table.shape)), nodes);
  const Place partial = binder.At(op.partial);
  if (scheme.combine != Combine::kConcatenate) {
    KINGLET_RETURN_IF_ERROR(
        AppendProduct(binder, scheme.codebook, x, Finish(), partial, {}, nodes));
    return nodes;
  }
  PartProducts products{};
  KINGLET_ASSIGN_OR_RETURN(products.codebook, binder.weights.Stored(scheme.codebook));
  products.x = x.vector;
  products.partial = partial;
  products.count = static_cast<uint32_t>(PartialCount(scheme));
  if (SharesPoolOfParts(scheme)) {
    products.pool = scheme.pools[0];
  } else {
    std::vector<uint64_t> positions;
    for (uint32_t j = 0; j < scheme.positions; ++j) {
      positions.insert(positions.end(), scheme.PoolSize(j), j);
    }
    KINGLET_ASSIGN_OR_RETURN(products.positions, binder.weights.NarrowConstants(positions));
  }
  nodes.push_back(MakeNode(products));
  return nodes;
}

Nodes BindOp(const CodedSums& op, Binder& binder) {
  SumOfParts node{};
  KINGLET_RETURN_IF_ERROR(
      FillSum(op, PartialFirsts(binder.plan.weights[op.table].coded()->scheme), binder, node));
  node.partial = binder.At(op.partial);
  return std::vector<Node>{MakeNode(node)};
}

Nodes BindOp(const CodedProduct& op, Binder& binder) {
  const TensorView& table = binder.plan.weights[op.table];
  const CodingScheme& scheme = table.coded()->scheme;
  std::vector<Node> nodes;
  const ProductOperand x =
      OperandOf(binder, op.x, op.input, static_cast<uint32_t>(Cols(table.shape)), nodes);
  SumOfDots node{};
  KINGLET_RETURN_IF_ERROR(FillSum(op, scheme.PoolFirsts(), binder, node));
  KINGLET_ASSIGN_OR_RETURN(node.codebook, binder.weights.Stored(scheme.codebook));
  node.x = x.vector;
  node.step = scheme.combine == Combine::kConcatenate ? node.codebook.cols : 0;
  nodes.push_back(MakeNode(node));
  return nodes;
}

}  // namespace kinglet::cuda
