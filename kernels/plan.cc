#include "kernels/plan.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace kinglet {

int64_t LargestCode(const ActivationQuantiser& quantiser) {
  return std::llrint(std::nearbyint(quantiser.max_abs / quantiser.step));
}

size_t EmbeddingStep(const Plan& plan) {
  const auto found = std::find_if(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
    return std::holds_alternative<EmbedRow>(step.op);
  });
  return static_cast<size_t>(found - plan.steps.begin());
}

}  // namespace kinglet
