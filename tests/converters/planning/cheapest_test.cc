#include "converters/planning/cheapest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace kinglet::cheapest_test {
namespace {

struct Sum {
  double loss = 0, cost = 0;
};
Sum SumOf(const std::vector<std::vector<Form>>& tensors, const std::vector<size_t>& chosen) {
  Sum sum;
  for (size_t i = 0; i < tensors.size(); ++i) {
    sum.loss += tensors[i][chosen[i]].loss;
    sum.cost += tensors[i][chosen[i]].cost;
  }
  return sum;
}

// The least loss within the budget, by trying everything.
double Least(const std::vector<std::vector<Form>>& tensors, size_t from, double budget) {
  if (budget < 0) return INFINITY;
  if (from == tensors.size()) return 0;
  double least = INFINITY;
  for (const Form& form : tensors[from]) {
    least = std::min(least, form.loss + Least(tensors, from + 1, budget - form.cost));
  }
  return least;
}

TEST(CheapestForms, IsNearTheBestOfAll) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  double lost = 0, possible = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<Form>> tensors(5);
    double cheapest = 0, dearest = 0;
    for (auto& forms : tensors) {
      const double size = std::exp(4 * uniform(random)), weight = uniform(random);
      for (int bits = 2; bits <= 6; ++bits) {
        forms.push_back({weight * std::pow(4.0, 2 - bits), size * bits});
      }
      cheapest += forms.front().cost;
      dearest += forms.back().cost;
    }
    const double budget = cheapest + (dearest - cheapest) * uniform(random);
    const auto chosen = CheapestForms(tensors, budget);
    ASSERT_TRUE(chosen);
    const Sum sum = SumOf(tensors, *chosen);
    EXPECT_LE(sum.cost, budget);
    const double least = Least(tensors, 0, budget);
    EXPECT_GE(sum.loss, least - 1e-12);
    lost += sum.loss;
    possible += least;
  }
  EXPECT_LT(lost, 1.05 * possible);  // the lower convex hull, and what Spend fills in
}

TEST(CheapestForms, TakesAllThatIsFreeAndRefusesWhatIsTooDear) {
  const std::vector<std::vector<Form>> tensors = {{{0, 10}, {1, 5}}, {{0, 10}, {0, 8}, {2, 1}}};
  EXPECT_EQ(*CheapestForms(tensors, 100), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(*CheapestForms(tensors, 6), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(CheapestForms(tensors, 5.9), std::nullopt);
  EXPECT_EQ(*CheapestForms(tensors, 13), (std::vector<size_t>{1, 1}));
}

}  // namespace
}  // namespace kinglet::cheapest_test
