// How PartialProducts and CodedSums become device steps (coded.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Steps BindOp(const PartialProducts& op, Binder& binder) {
  const TensorView& table = binder.plan.weights[op.table];
  const CodingScheme& scheme = table.coded()->scheme;
  std::vector<Step> steps;
  const ProductOperand x =
      OperandOf(binder, op.x, op.input, static_cast<uint32_t>(Cols(table.shape)), steps);
  const Place partial = binder.At(op.partial);
  if (scheme.combine != Combine::kConcatenate) {
    KINGLET_RETURN_IF_ERROR(
        AppendProduct(binder, scheme.codebook, x, Finish(), partial, {}, steps));
    return steps;
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
  steps.push_back(MakeStep(products));
  return steps;
}

Steps BindOp(const CodedSums& op, Binder& binder) {
  const CodingScheme& scheme = binder.plan.weights[op.table].coded()->scheme;
  SumOfParts step{};
  KINGLET_ASSIGN_OR_RETURN(step.codes, binder.weights.Codes(op.table));
  KINGLET_ASSIGN_OR_RETURN(step.firsts, binder.weights.NarrowConstants(PartialFirsts(scheme)));
  step.partial = binder.At(op.partial);
  step.y = binder.At(op.y).Plus(op.y_offset * sizeof(float));
  step.mean = scheme.combine == Combine::kMean;
  step.finish.relu = op.relu;
  KINGLET_ASSIGN_OR_RETURN(step.finish.bias, binder.weights.RealsOrNull(op.bias));
  return std::vector<Step>{MakeStep(step)};
}

}  // namespace kinglet::cuda
