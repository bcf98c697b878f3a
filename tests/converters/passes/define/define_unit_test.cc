#include "converters/passes/define/define_unit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kinglet {
namespace {

using Layer = DefineLayer;

// 12 -> 16 -> 20 with e -> 6.
DefineUnit Small() {
  DefineUnit unit;
  unit.map_width = 12;
  unit.layers = {{.in = 12, .out = 16, .groups = 4},
                 {.in = 28, .out = 20, .groups = 2, .skip = Layer::Skip::kMix},
                 {.in = 20, .out = 6}};
  return unit;
}

std::string Refusal(const DefineUnit& unit) {
  const Status status = CheckUnit(unit);
  if (status.ok()) return "accepted";
  EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
  return status.message();
}

TEST(CheckUnit, AcceptsWhatFits) {
  EXPECT_EQ(Refusal(Small()), "accepted");
  DefineUnit unit;
  unit.map_width = 1;
  EXPECT_EQ(Refusal(unit), "accepted");
  EXPECT_EQ(OutputWidth(unit), 1U);
  unit.map_width = kLargestDefineWidth;
  EXPECT_EQ(Refusal(unit), "accepted");
}

TEST(CheckUnit, NamesEachInconsistency) {
  struct Case {
    void (*change)(DefineUnit&);
    const char* fault;
  };
  const Case cases[] = {
      {[](DefineUnit& unit) { unit.map_width = 0; },
       "map width: expected 1 to 65536 features, found 0"},
      {[](DefineUnit& unit) { unit.map_width = UINT64_MAX; }, "found 18446744073709551615"},
      {[](DefineUnit& unit) { unit.map_scale = NAN; },
       "define unit: map scale: expected a finite number, found NaN"},
      {[](DefineUnit& unit) { unit.table_scale = INFINITY; },
       "define unit: table scale: expected a finite number, found inf"},
      {[](DefineUnit& unit) { unit.entry_layers = 4; },
       "entry layers: expected at most the 3 layers, found 4"},
      {[](DefineUnit& unit) { unit.layers[1].in = 16; },
       "layer 1, in: expected 28 (16 of the previous output and 12 of e), found 16"},
      {[](DefineUnit& unit) { unit.layers[2].in = 21; },
       "define unit: layer 2, in: expected 20, found 21"},
      {[](DefineUnit& unit) { unit.layers[2].out = 0; },
       "define unit: layer 2, out: expected 1 to 65536 features, found 0"},
      {[](DefineUnit& unit) { unit.layers[0].out = kLargestDefineWidth + 4; }, "found 65540"},
      {[](DefineUnit& unit) { unit.layers[0].groups = 0; },
       "layer 0, groups: expected a divisor of the 12 features of in, found 0"},
      {[](DefineUnit& unit) { unit.layers[0].groups = 3; },
       "define unit: layer 0, groups: expected a divisor of the 16 features of out, found 3"},
      {[](DefineUnit& unit) { unit.layers[0].groups = 8; },
       "define unit: layer 0, groups: expected a divisor of the 12 features of in, found 8"},
      // Both divide 28 + 20 features, but not 12 of e.
      {[](DefineUnit& unit) {
         unit.layers[0].out = 16;
         unit.layers[1].groups = 7;
         unit.layers[1].out = 21;
         unit.layers[2].in = 21;
       },
       "layer 1, groups: expected a divisor of the 12 features of e, found 7"},
      {[](DefineUnit& unit) { unit.layers[0].skip = Layer::Skip::kMix; },
       "layer 0, skip: expected none, for the previous output is e or comes before it, found mix"},
      {[](DefineUnit& unit) {
         unit.entry_layers = 1;
         unit.layers[1].skip = Layer::Skip::kConcatenate;
       },
       "layer 1, skip: expected none, for the previous output is e or comes before it, found "
       "concat"},
      {[](DefineUnit& unit) { unit.layers[2].residual = Layer::Residual::kAfterActivation; },
       "layer 2, out: expected 20, as the residual adds the previous output, found 6"},
      {[](DefineUnit& unit) {
         unit.layers[1].norm = Layer::Norm::kWhole;
         unit.layers[1].norm_epsilon = 0;
       },
       "layer 1, norm epsilon: expected a number above 0, found 0.0"},
      {[](DefineUnit& unit) {
         unit.layers[1].norm = Layer::Norm::kPerGroup;
         unit.layers[1].norm_epsilon = NAN;
       },
       "layer 1, norm epsilon: expected a number above 0, found NaN"},
  };
  for (const Case& one : cases) {
    DefineUnit unit = Small();
    one.change(unit);
    EXPECT_NE(Refusal(unit).find(one.fault), std::string::npos)
        << "expected: " << one.fault << "\nfound: " << Refusal(unit);
  }
}

TEST(CheckUnit, NamesAllFaultsInOneLineOfBoundedLength) {
  DefineUnit unit = Small();
  unit.map_scale = NAN;
  unit.layers[1].in = 27;
  unit.layers[2].in = 19;
  EXPECT_EQ(
      Refusal(unit),
      "define unit: map scale: expected a finite number, found NaN; layer 1, in: expected 28 "
      "(16 of the previous output and 12 of e), found 27; layer 1, groups: expected a divisor "
      "of the 27 features of in, found 2; layer 2, in: expected 20, found 19");
  unit.layers.assign(100'000, {.in = 0, .out = 0, .groups = 0});
  EXPECT_LT(Refusal(unit).size(), 5000U);
  EXPECT_NE(Refusal(unit).find(" more"), std::string::npos);
}

TEST(ShapesOf, EveryDeclaration) {
  const auto shapes = [](Layer layer) {
    layer.in = 12;
    layer.out = 18;
    layer.groups = 3;
    return ShapesOf(layer);
  };
  using Shape = std::vector<uint64_t>;
  EXPECT_EQ(shapes({}).weight, (Shape{3, 4, 6}));
  EXPECT_EQ(shapes({.layout = Layer::Layout::kOutIn}).weight, (Shape{3, 6, 4}));
  EXPECT_EQ(shapes({.weights = Layer::Weights::kShared}).weight, (Shape{4, 6}));
  EXPECT_EQ(shapes({.bias = Layer::Bias::kPerGroup}).bias, (Shape{18}));
  EXPECT_EQ(shapes({.bias = Layer::Bias::kShared}).bias, (Shape{6}));
  EXPECT_EQ(shapes({.bias = Layer::Bias::kNone}).bias, Shape());
  EXPECT_EQ(shapes({}).norm_gain, Shape());
  EXPECT_EQ(shapes({.norm = Layer::Norm::kWhole}).norm_gain, (Shape{18}));
  EXPECT_EQ(shapes({.norm = Layer::Norm::kPerGroup}).norm_offset, (Shape{6}));
  EXPECT_EQ(shapes({.norm = Layer::Norm::kWhole, .norm_gain = false}).norm_gain, Shape());
}

// The unit that pranavajitnair/DeFINE-AWD-LSTM makes of the paper's settings: one matrix and bias
// for all groups, groups halving down to 2, steps of (k - n) / N rounded down.
DefineUnit Shared(uint64_t n, uint64_t k, uint64_t depth, uint64_t m) {
  DefineUnit unit;
  unit.map_width = n;
  const uint64_t step = (k - n) / depth;
  for (uint64_t i = 0; i < depth; ++i) {
    unit.layers.push_back({.in = n + i * step + (i > 0 ? n : 0),
                           .out = n + (i + 1) * step,
                           .groups = uint64_t{1} << (depth - i),
                           .weights = Layer::Weights::kShared,
                           .layout = Layer::Layout::kOutIn,
                           .bias = Layer::Bias::kShared,
                           .skip = i > 0 ? Layer::Skip::kMix : Layer::Skip::kNone,
                           .order = Layer::Order::kPreviousFirst});
  }
  unit.layers.push_back({.in = n + depth * step, .out = m});
  return unit;
}

// Counted from that implementation's tensors; where a width is no multiple of the groups it rounds
// down, and its own forward pass fails.
TEST(ParameterCount, OfThePublicSharedWeightUnits) {
  EXPECT_EQ(ParameterCount(Shared(256, 1024, 3, 256)), 564'224U);
  EXPECT_EQ(ParameterCount(Shared(384, 1024, 7, 384)), 817'548U);
  EXPECT_EQ(ParameterCount(Shared(512, 1024, 11, 512)), 1'013'564U);
  EXPECT_EQ(ParameterCount(Shared(128, 1024, 7, 400)), 734'326U);
  EXPECT_TRUE(CheckUnit(Shared(256, 1024, 3, 256)).ok());
  EXPECT_TRUE(CheckUnit(Shared(128, 1024, 7, 400)).ok());
  EXPECT_NE(Refusal(Shared(384, 1024, 7, 384))
                .find("layer 0, groups: expected a divisor of the 475 features of out, found 128"),
            std::string::npos);
}

TEST(ParameterCount, CountsWhatIsDeclared) {
  DefineUnit unit = Small();
  EXPECT_EQ(ParameterCount(unit), 4U * 3 * 4 + 16 + 2 * 14 * 10 + 20 + 20 * 6 + 6);
  unit.layers[0].norm = Layer::Norm::kPerGroup;
  unit.layers[1].bias = Layer::Bias::kNone;
  EXPECT_EQ(ParameterCount(unit), 4U * 3 * 4 + 16 + 2 * 4 + 2 * 14 * 10 + 20 * 6 + 6);
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
            "define unit: layer 1, weight: expected 280 entries as [2, 14, 10], found 281");
  EXPECT_EQ(refusal([](auto& weights) { weights[2].bias.clear(); }),
            "define unit: layer 2, bias: expected 6 entries, found 0");
  EXPECT_EQ(refusal([](auto& weights) { weights[0].norm_gain.resize(4); }),
            "define unit: layer 0, norm gain: expected none, found 4");
  EXPECT_EQ(
      refusal([](auto& weights) { weights[1].bias[3] = std::numeric_limits<float>::quiet_NaN(); }),
      "define unit: layer 1, bias, entry 3: expected a finite number, found NaN");
}

}  // namespace
}  // namespace kinglet
