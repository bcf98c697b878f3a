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

bool KeepsRows(const Plan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(), [](const Node& node) {
    const auto* const embed = std::get_if<EmbedRow>(&node.op);
    return embed != nullptr && !embed->units.empty();
  });
}

}  // namespace kinglet
