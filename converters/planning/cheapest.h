// Chooses one of several forms for each tensor, so that all together cost no more than a budget and
// lose little: every tensor is taken at the same slope of loss against cost (Shoham & Gersho 1988).
#ifndef KINGLET_CONVERTERS_PLANNING_CHEAPEST_H_
#define KINGLET_CONVERTERS_PLANNING_CHEAPEST_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kinglet {

struct Form {
  double loss = 0;
  double cost = 0;
};

// The index of the form of each tensor: the form of least loss + slope * cost at the least slope
// that keeps the budget, found by bisection. The rest of the budget is then spent on one change
// after the other, each the change that saves most loss for its cost. Of equal forms the first.
// Returns nullopt if the cheapest forms are over the budget. REQUIRES: a form of each tensor;
// finite costs, no loss NaN.
std::optional<std::vector<size_t>> CheapestForms(std::span<const std::vector<Form>> tensors,
                                                 double budget);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_CHEAPEST_H_
