#include "kernels/plan.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace kinglet {

int64_t LargestCode(const ActivationQuantiser& quantiser) {
  return std::llrint(std::nearbyint(quantiser.max_abs / quantiser.scale));
}

size_t EmbeddingNode(const Plan& plan) {
  const auto found = std::find_if(plan.nodes.begin(), plan.nodes.end(), [](const Node& node) {
    return std::holds_alternative<EmbedRow>(node.op);
  });
  return static_cast<size_t>(found - plan.nodes.begin());
}

}  // namespace kinglet
