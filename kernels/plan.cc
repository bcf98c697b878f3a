#include "kernels/plan.h"

#include <cmath>

namespace kinglet {

int64_t LargestCode(const ActivationQuantiser& quantiser) {
  return std::llrint(std::nearbyint(quantiser.max_abs / quantiser.step));
}

}  // namespace kinglet
