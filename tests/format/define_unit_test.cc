#include "format/define_unit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace kinglet::define_unit_test {
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

TEST(FaultsOf, AcceptsWhatFits) {
  EXPECT_EQ(FaultsOf(Small()), "");
  DefineUnit unit;
  unit.map_width = 1;
  EXPECT_EQ(FaultsOf(unit), "");
  EXPECT_EQ(OutputWidth(unit), 1U);
  unit.map_width = kLargestDefineWidth;
  EXPECT_EQ(FaultsOf(unit), "");
}

TEST(FaultsOf, NamesEachInconsistency) {
  struct Case {
    void (*change)(DefineUnit&);
    const char* fault;
  };
  const Case cases[] = {
      {[](DefineUnit& unit) { unit.map_width = 0; },
       "map width: expected 1 to 65536 features, found 0"},
      {[](DefineUnit& unit) { unit.map_width = UINT64_MAX; }, "found 18446744073709551615"},
      {[](DefineUnit& unit) { unit.entry_layers = 4; },
       "entry layers: expected at most the 3 layers, found 4"},
      {[](DefineUnit& unit) { unit.layers[1].in = 16; },
       "layer 1, in: expected 28 (16 of the previous output and 12 of e), found 16"},
      {[](DefineUnit& unit) { unit.layers[2].in = 21; }, "layer 2, in: expected 20, found 21"},
      {[](DefineUnit& unit) { unit.layers[2].out = 0; },
       "layer 2, out: expected 1 to 65536 features, found 0"},
      {[](DefineUnit& unit) { unit.layers[0].out = kLargestDefineWidth + 4; }, "found 65540"},
      {[](DefineUnit& unit) { unit.layers[0].groups = 0; },
       "layer 0, groups: expected a divisor of the 12 features of in, found 0"},
      {[](DefineUnit& unit) { unit.layers[0].groups = 3; },
       "layer 0, groups: expected a divisor of the 16 features of out, found 3"},
      {[](DefineUnit& unit) { unit.layers[0].groups = 8; },
       "layer 0, groups: expected a divisor of the 12 features of in, found 8"},
      // 7 divides the 28 features of the input, but not the 12 of e.
      {[](DefineUnit& unit) {
         unit.layers[0].out = 16;
         unit.layers[1].groups = 7;
         unit.layers[1].out = 21;
         unit.layers[2].in = 21;
       },
       "layer 1, groups: expected a divisor of the 12 features of e, found 7"},
      {[](DefineUnit& unit) { unit.layers[0].skip = Layer::Skip::kMix; },
       "layer 0, skip: expected none, as the previous output is e or comes before e, found mix"},
      {[](DefineUnit& unit) {
         unit.entry_layers = 1;
         unit.layers[1].skip = Layer::Skip::kConcatenate;
       },
       "layer 1, skip: expected none, as the previous output is e or comes before e, found "
       "concat"},
      {[](DefineUnit& unit) { unit.layers[2].residual = Layer::Residual::kAfterActivation; },
       "layer 2, out: expected 20, as the residual adds the previous output, found 6"},
      {[](DefineUnit& unit) {
         unit.layers[1].norm = Layer::Norm::kWhole;
         unit.layers[1].norm_epsilon = 0;
       },
       "layer 1, norm epsilon: expected a number above 0, found 0"},
      {[](DefineUnit& unit) {
         unit.layers[1].norm = Layer::Norm::kPerGroup;
         unit.layers[1].norm_epsilon = NAN;
       },
       "layer 1, norm epsilon: expected a number above 0, found nan"},
  };
  for (const Case& one : cases) {
    DefineUnit unit = Small();
    one.change(unit);
    EXPECT_NE(FaultsOf(unit).find(one.fault), std::string::npos)
        << "expected: " << one.fault << "\nfound: " << FaultsOf(unit);
  }
}

TEST(FaultsOf, OfAHighwayLayer) {
  DefineUnit unit{12, 0, {{.in = 12, .out = 12}}};
  unit.layers[0].residual = Layer::Residual::kHighway;
  EXPECT_EQ(FaultsOf(unit), "");
  EXPECT_EQ(ShapesOf(unit.layers[0]).weight, (Shape{24, 12}));
  EXPECT_EQ(ShapesOf(unit.layers[0]).bias, (Shape{24}));
  EXPECT_EQ(WidestOf(unit).products, 24U);
  DefineUnit other = unit;
  other.layers[0].groups = 2;
  const std::string refused =
      "layer 0, residual: expected no highway with groups, norm, shuffle or skip, found one";
  EXPECT_EQ(FaultsOf(other), refused);
  other = unit;
  other.layers[0].norm = Layer::Norm::kWhole;
  EXPECT_EQ(FaultsOf(other), refused);
  other = unit;
  other.layers[0].out = 10;
  EXPECT_EQ(FaultsOf(other),
            "layer 0, out: expected 12, as the residual adds the previous output, found 10");
}

TEST(FaultsOf, NamesAllFaultsInOneLineOfBoundedLength) {
  DefineUnit unit = Small();
  unit.layers[0].norm = Layer::Norm::kWhole;
  unit.layers[0].norm_epsilon = NAN;
  unit.layers[1].in = 27;
  unit.layers[2].in = 19;
  EXPECT_EQ(
      FaultsOf(unit),
      "layer 0, norm epsilon: expected a number above 0, found nan; layer 1, in: expected 28 "
      "(16 of the previous output and 12 of e), found 27; layer 1, groups: expected a divisor "
      "of the 27 features of in, found 2; layer 2, in: expected 20, found 19");
  unit.layers.assign(100'000, {.in = 0, .out = 0, .groups = 0});
  EXPECT_LT(FaultsOf(unit).size(), 5000U);
  EXPECT_NE(FaultsOf(unit).find(" more"), std::string::npos);
}

TEST(ShapesOf, EveryDeclaration) {
  const auto shapes = [](Layer layer) {
    layer.in = 12;
    layer.out = 18;
    layer.groups = 3;
    return ShapesOf(layer);
  };
  EXPECT_EQ(shapes({}).weight, (Shape{18, 4}));
  EXPECT_EQ(shapes({.weights = Layer::Weights::kShared}).weight, (Shape{6, 4}));
  EXPECT_EQ(shapes({.bias = Layer::Bias::kPerGroup}).bias, (Shape{18}));
  EXPECT_EQ(shapes({.bias = Layer::Bias::kShared}).bias, (Shape{6}));
  EXPECT_EQ(shapes({.bias = Layer::Bias::kNone}).bias, Shape());
  EXPECT_EQ(shapes({}).norm_gain, Shape());
  EXPECT_EQ(shapes({.norm = Layer::Norm::kWhole}).norm_gain, (Shape{18}));
  EXPECT_EQ(shapes({.norm = Layer::Norm::kPerGroup}).norm_offset, (Shape{6}));
  EXPECT_EQ(shapes({.norm = Layer::Norm::kWhole, .norm_gain = false}).norm_gain, Shape());
}

// The unit that the code of pranavajitnair/DeFINE-AWD-LSTM builds from the paper's settings: all
// groups share a matrix and a bias, groups halve down to 2, widths grow by (k - n) / N rounded
// down.
DefineUnit Shared(uint64_t n, uint64_t k, uint64_t depth, uint64_t m) {
  DefineUnit unit;
  unit.map_width = n;
  const uint64_t step = (k - n) / depth;
  for (uint64_t i = 0; i < depth; ++i) {
    unit.layers.push_back({.in = n + i * step + (i > 0 ? n : 0),
                           .out = n + (i + 1) * step,
                           .groups = uint64_t{1} << (depth - i),
                           .weights = Layer::Weights::kShared,
                           .bias = Layer::Bias::kShared,
                           .skip = i > 0 ? Layer::Skip::kMix : Layer::Skip::kNone,
                           .order = Layer::Order::kPreviousFirst});
  }
  unit.layers.push_back({.in = n + depth * step, .out = m});
  return unit;
}

// The expected counts are those of that implementation's tensors. Where a width is no multiple of
// the groups, it rounds down (and its own forward pass fails).
TEST(ParameterCount, OfThePublicSharedWeightUnits) {
  EXPECT_EQ(ParameterCount(Shared(256, 1024, 3, 256)), 564'224U);
  EXPECT_EQ(ParameterCount(Shared(384, 1024, 7, 384)), 817'548U);
  EXPECT_EQ(ParameterCount(Shared(512, 1024, 11, 512)), 1'013'564U);
  EXPECT_EQ(ParameterCount(Shared(128, 1024, 7, 400)), 734'326U);
  EXPECT_EQ(FaultsOf(Shared(256, 1024, 3, 256)), "");
  EXPECT_EQ(FaultsOf(Shared(128, 1024, 7, 400)), "");
  EXPECT_NE(FaultsOf(Shared(384, 1024, 7, 384))
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

TEST(Widths, FollowTheLayers) {
  DefineUnit unit = Small();
  EXPECT_EQ(SkipWidth(unit), 12U);
  EXPECT_EQ(WidestOf(unit).in, 28U);
  EXPECT_EQ(WidestOf(unit).products, 20U);
  EXPECT_EQ(InputWidth(unit.layers[1], 12, 16), 28U);
  EXPECT_EQ(InputWidth(unit.layers[2], 12, 20), 20U);
  unit.entry_layers = 1;
  EXPECT_EQ(SkipWidth(unit), 16U);
  unit.layers.clear();
  EXPECT_EQ(OutputWidth(unit), 12U);
  EXPECT_EQ(WidestOf(unit).products, 12U);
}

}  // namespace
}  // namespace kinglet::define_unit_test
