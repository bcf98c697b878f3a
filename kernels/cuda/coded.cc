// How PartialProducts and CodedSums become steps (coded.h).
#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

Result<const uint32_t*> Narrowed(Binder& binder, const std::vector<uint64_t>& values) {
  const std::vector<uint32_t> narrow(values.begin(), values.end());
  return binder.weights.Constants(std::span<const uint32_t>(narrow));
}

}  // namespace

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
    KINGLET_ASSIGN_OR_RETURN(products.positions, Narrowed(binder, positions));
  }
  steps.push_back(MakeStep(products));
  return steps;
}

Steps BindOp(const CodedSums& op, Binder& binder) {
  const CodingScheme& scheme = binder.plan.weights[op.table].coded()->scheme;
  SumOfParts step{};
  KINGLET_ASSIGN_OR_RETURN(step.codes, binder.weights.Codes(op.table));
  KINGLET_ASSIGN_OR_RETURN(step.firsts, Narrowed(binder, PartialFirsts(scheme)));
  step.partial = binder.At(op.partial);
  step.y = binder.At(op.y).Plus(op.y_offset * sizeof(float));
  step.mean = scheme.combine == Combine::kMean;
  step.finish.relu = op.relu;
  if (op.bias) {
    KINGLET_ASSIGN_OR_RETURN(step.finish.bias, binder.weights.Reals(*op.bias));
  }
  return std::vector<Step>{MakeStep(step)};
}

}  // namespace kinglet::cuda
