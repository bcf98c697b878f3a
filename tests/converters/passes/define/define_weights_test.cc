#include "converters/passes/define/define_weights.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace kinglet::define_weights_test {
namespace {

// 12 -> 16 -> 20 with e -> 6.
DefineUnit Small() {
  DefineUnit unit;
  unit.map_width = 12;
  unit.layers = {{.in = 12, .out = 16, .groups = 4},
                 {.in = 28, .out = 20, .groups = 2, .skip = DefineLayer::Skip::kMix},
                 {.in = 20, .out = 6}};
  return unit;
}

TEST(CheckUnit, RefusesWithAllFaults) {
  EXPECT_TRUE(CheckUnit(Small()).ok());
  DefineUnit unit = Small();
  unit.layers[2].in = 21;
  const Status status = CheckUnit(unit);
  EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "define unit: layer 2, in: expected 20, found 21");
}

std::vector<DefineWeights> SmallWeights() {
  std::vector<DefineWeights> weights(3);
  weights[0].weight.resize(48);
  weights[0].bias.resize(16);
  weights[1].weight.resize(280);
  weights[1].bias.resize(20);
  weights[2].weight.resize(120);
  weights[2].bias.resize(6);
  return weights;
}

TEST(CheckWeights, RefusesWhatTheDeclarationDoesNotSay) {
  EXPECT_TRUE(CheckWeights(Small(), SmallWeights()).ok());
  const auto refusal = [](auto change) {
    std::vector<DefineWeights> weights = SmallWeights();
    change(weights);
    const Status status = CheckWeights(Small(), weights);
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
    return status.message();
  };
  EXPECT_EQ(refusal([](auto& weights) { weights.pop_back(); }),
            "define unit: layers with values: expected 3 entries, found 2");
  EXPECT_EQ(refusal([](auto& weights) { weights[1].weight.push_back(0); }),
            "define unit: layer 1, weight: expected 280 entries as [20, 14], found 281");
  EXPECT_EQ(refusal([](auto& weights) { weights[2].bias.clear(); }),
            "define unit: layer 2, bias: expected 6 entries, found 0");
  EXPECT_EQ(refusal([](auto& weights) { weights[0].norm_gain.resize(4); }),
            "define unit: layer 0, norm gain: expected none, found 4");
  EXPECT_EQ(
      refusal([](auto& weights) { weights[1].bias[3] = std::numeric_limits<float>::quiet_NaN(); }),
      "define unit: layer 1, bias, entry 3: expected a finite number, found NaN");
}

}  // namespace
}  // namespace kinglet::define_weights_test
