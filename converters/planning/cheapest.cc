#include "converters/planning/cheapest.h"

#include <cmath>

#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

// The form of least loss + slope * cost; of equal forms the cheaper.
size_t BestAt(const std::vector<Form>& forms, double slope) {
  size_t best = 0;
  for (size_t i = 1; i < forms.size(); ++i) {
    const double a = forms[i].loss + slope * forms[i].cost;
    const double b = forms[best].loss + slope * forms[best].cost;
    if (a < b || (a == b && forms[i].cost < forms[best].cost)) best = i;
  }
  return best;
}

size_t Cheapest(const std::vector<Form>& forms) {
  size_t best = 0;
  for (size_t i = 1; i < forms.size(); ++i) {
    if (forms[i].cost < forms[best].cost ||
        (forms[i].cost == forms[best].cost && forms[i].loss < forms[best].loss)) {
      best = i;
    }
  }
  return best;
}

double CostOf(std::span<const std::vector<Form>> tensors, const std::vector<size_t>& chosen) {
  double cost = 0;
  for (size_t t = 0; t < tensors.size(); ++t) cost += tensors[t][chosen[t]].cost;
  return cost;
}

std::vector<size_t> AllAt(std::span<const std::vector<Form>> tensors, double slope) {
  std::vector<size_t> chosen;
  for (const std::vector<Form>& forms : tensors) chosen.push_back(BestAt(forms, slope));
  return chosen;
}

// Spends the rest of the budget on the affordable change that saves most loss for its cost, until
// no change is affordable.
void Spend(std::span<const std::vector<Form>> tensors, double budget, std::vector<size_t>& chosen) {
  for (;;) {
    double best_gain = 0;
    size_t tensor = 0, form = 0;
    for (size_t t = 0; t < tensors.size(); ++t) {
      const Form& current = tensors[t][chosen[t]];
      for (size_t i = 0; i < tensors[t].size(); ++i) {
        const double saved = current.loss - tensors[t][i].loss;
        const double extra_cost = tensors[t][i].cost - current.cost;
        if (!(saved > 0) || extra_cost > budget) continue;
        const double gain = extra_cost > 0 ? saved / extra_cost : INFINITY;
        if (gain > best_gain) {
          best_gain = gain;
          tensor = t;
          form = i;
        }
      }
    }
    if (best_gain == 0) return;
    budget -= tensors[tensor][form].cost - tensors[tensor][chosen[tensor]].cost;
    chosen[tensor] = form;
  }
}

}  // namespace

std::optional<std::vector<size_t>> CheapestForms(std::span<const std::vector<Form>> tensors,
                                                 double budget) {
  std::vector<size_t> chosen;
  for (const std::vector<Form>& forms : tensors) chosen.push_back(Cheapest(forms));
  if (CostOf(tensors, chosen) > budget) return std::nullopt;
  if (std::vector<size_t> best = AllAt(tensors, 0); CostOf(tensors, best) <= budget) return best;
  // Bisects the logarithm of the slope: losses are nats, costs bytes or operations.
  constexpr double kLeast = -100, kMost = 100;
  constexpr int kHalvings = 200;
  double low = kLeast, high = kMost;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = low + (high - low) / 2;
    std::vector<size_t> tried = AllAt(tensors, portable::Exp(middle));
    if (CostOf(tensors, tried) <= budget) {
      high = middle;
      chosen = std::move(tried);
    } else {
      low = middle;
    }
  }
  Spend(tensors, budget - CostOf(tensors, chosen), chosen);
  return chosen;
}

}  // namespace kinglet
