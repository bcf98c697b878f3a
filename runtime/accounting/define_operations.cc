#include "runtime/accounting/define_operations.h"

namespace kinglet {

OperationTally ActivationOperations(Activation activation, double n) {
  switch (activation) {
    case Activation::kNone:
      return {};
    // One function of each element.
    case Activation::kRelu:
    case Activation::kTanh:
    case Activation::kSigmoid:
      return {0, 0, n};
    // One function of each element, and a product with the element or the slope.
    case Activation::kGelu:
    case Activation::kSwish:
    case Activation::kLeakyRelu:
      return {n, 0, n};
    case Activation::kDoubleSwish:
      return {n, n, n};
    // x^2, its factor, and two products with x; the sum; the sigmoid.
    case Activation::kTanhGelu:
      return {4 * n, n, n};
  }
  return {};
}

DefineOperations OperationsOf(const DefineLayer& layer) {
  const auto out = static_cast<double>(layer.out);
  const uint64_t chunk = layer.in / layer.groups;  // exact
  const auto in = static_cast<double>(chunk);
  DefineOperations operations;
  operations.products = {in * out, (in - 1) * out, 0};
  if (layer.bias != DefineLayer::Bias::kNone) operations.products.additions += out;
  if (layer.norm != DefineLayer::Norm::kNone) {
    const bool whole = layer.norm == DefineLayer::Norm::kWhole;
    const double parts = whole ? 1 : static_cast<double>(layer.groups);
    // As LayerNorm for each part, without the operations of a missing gain or offset.
    operations.norm = {(layer.norm_gain ? 2 : 1) * out, (layer.norm_offset ? 5 : 4) * out - parts,
                       out + 3 * parts};
  }
  operations.activation = ActivationOperations(layer.activation, out);
  if (layer.residual != DefineLayer::Residual::kNone) operations.residual = {0, out, 0};
  return operations;
}

}  // namespace kinglet
