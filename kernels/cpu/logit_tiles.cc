#include "kernels/cpu/logit_tiles.h"

#include <variant>

namespace kinglet::cpu {

SummedProducts::SummedProducts(const Plan& plan) {
  for (size_t i = 0; i + 1 < plan.nodes.size(); ++i) {
    const auto* const product = std::get_if<MatVec>(&plan.nodes[i].op);
    const auto* const normaliser = std::get_if<LogSumExp>(&plan.nodes[i + 1].op);
    if (product == nullptr || normaliser == nullptr || normaliser->x != product->y) continue;
    const uint64_t rows = Rows(plan.weights[product->weight].shape);
    if (product->y_offset != 0 || rows != plan.buffer(product->y).count) continue;
    normalisers_[product] = normaliser;
  }
}

const LogSumExp* SummedProducts::NormaliserOf(const MatVec& product) const {
  const auto found = normalisers_.find(&product);
  return found == normalisers_.end() ? nullptr : found->second;
}

}  // namespace kinglet::cpu
