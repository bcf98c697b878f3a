#include "runtime/accounting/define_operations.h"

#include <cmath>
#include <numeric>

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
  const auto out = static_cast<double>(layer.out), products = static_cast<double>(layer.products());
  const uint64_t chunk = layer.in / layer.groups;  // exact
  const auto in = static_cast<double>(chunk);
  DefineOperations operations;
  operations.products = {in * products, (in - 1) * products, 0};
  if (layer.bias != DefineLayer::Bias::kNone) operations.products.additions += products;
  if (layer.norm != DefineLayer::Norm::kNone) {
    const bool whole = layer.norm == DefineLayer::Norm::kWhole;
    const double parts = whole ? 1 : static_cast<double>(layer.groups);
    // As LayerNorm for each part, without the operations of a missing gain or offset.
    operations.norm = {(layer.norm_gain ? 2 : 1) * out, (layer.norm_offset ? 5 : 4) * out - parts,
                       out + 3 * parts};
  }
  operations.activation = ActivationOperations(layer.activation, out);
  if (layer.residual == DefineLayer::Residual::kHighway) {
    // The gates, two products with them, the sum, and 1 - g.
    operations.residual = {2 * out, 2 * out, out};
  } else if (layer.residual != DefineLayer::Residual::kNone) {
    operations.residual = {0, out, 0};
  }
  return operations;
}

OperationTally FilterOperations(const ByteFilter& filter, const Shape& weight, uint32_t letters,
                                uint32_t longest) {
  const double windows = WindowsOf(filter.width, letters, longest);
  const auto channels = static_cast<double>(weight[0]), inputs = static_cast<double>(weight[1]);
  // Of each channel: a dot product for each window, the largest of them, the bias, and the maximum
  // with 0.
  return OperationTally{windows * inputs, windows * (inputs - 1) + 1, windows} * channels;
}

uint32_t LettersOf(const Plan& plan, uint32_t id) {
  return id < plan.letters.size() ? plan.letters[id] : 0;
}

uint32_t MeanLetters(const Plan& plan, const EmbeddingBin& bin) {
  if (plan.letters.empty()) return 0;
  const auto first = plan.letters.begin() + bin.first;
  const double sum = std::accumulate(first, first + bin.size, 0.0);
  return static_cast<uint32_t>(std::lround(sum / bin.size));
}

}  // namespace kinglet
