#include "converters/recipe/recipe_unit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet {
namespace {

TEST(ParseUnitLayer, ReadsEveryChoice) {
  const auto parsed = ParseUnitLayer(Node(
      R"({"groups": 4, "weights": "shared", "layout": "out_in", "shuffle": "after_norm",
          "norm": "per_group", "epsilon": 0.5, "activation": "gelu", "skip": "mix",
          "order": "previous_first", "residual": "before_activation"})"));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->layout, DefineLayout::kOutIn);
  const DefineLayer expected{.groups = 4,
                             .weights = DefineLayer::Weights::kShared,
                             .shuffle = DefineLayer::Shuffle::kAfterNorm,
                             .norm = DefineLayer::Norm::kPerGroup,
                             .norm_epsilon = 0.5,
                             .activation = DefineLayer::Activation::kGelu,
                             .skip = DefineLayer::Skip::kMix,
                             .order = DefineLayer::Order::kPreviousFirst,
                             .residual = DefineLayer::Residual::kBeforeActivation};
  EXPECT_EQ(parsed->layer, expected);
  const auto defaults = ParseUnitLayer(Node("{}"));
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->layer, DefineLayer());
  EXPECT_EQ(defaults->layout, DefineLayout::kInOut);
  EXPECT_FALSE(ParseUnitLayer(Node(R"({"skip": "sum"})")).ok());
}

DefineRecipe UnitOf(const std::string& layers) {
  return std::get<DefineRecipe>(
      TableOf(R"({"define": {"map": [{"table": "t"}], "layers": )" + layers + "}}").form);
}

class ReadUnitTest : public testing::Test {
 protected:
  const SourceWeights weights_ = {
      // Two matrices [2, 3], and the same transposed.
      FloatTensor("in_out", {2, 2, 3}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}),
      FloatTensor("out_in", {2, 3, 2}, {1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60}),
      FloatTensor("one", {2, 3}, {1, 2, 3, 4, 5, 6}), RandomTensor("reduce", {5, 10}),
      RandomTensor("bias3", {3}), RandomTensor("bias6", {6}), RandomTensor("bias4", {4})};
  const RecipeTensors tensors_{weights_};

  Result<RecipeUnit> Read(const std::string& layers) const {
    return ReadUnit(UnitOf(layers), 4, tensors_);
  }
};

TEST_F(ReadUnitTest, WidthsAndBiasesFollowFromTheTensors) {
  const auto unit = Read(
      R"([{"groups": 2, "weight": "in_out", "bias": "bias3"},
          {"skip": "concatenate", "weight": "reduce", "layout": "out_in"}])");
  ASSERT_TRUE(unit.ok()) << unit.status().message();
  ASSERT_EQ(unit->unit.layers.size(), 2U);
  EXPECT_EQ(unit->unit.layers[0].in, 4U);
  EXPECT_EQ(unit->unit.layers[0].out, 6U);
  EXPECT_EQ(unit->unit.layers[0].bias, DefineLayer::Bias::kShared);
  EXPECT_EQ(unit->unit.layers[1].in, 10U);
  EXPECT_EQ(unit->unit.layers[1].out, 5U);
  EXPECT_EQ(unit->unit.layers[1].bias, DefineLayer::Bias::kNone);
  const auto whole = Read(R"([{"groups": 2, "weight": "in_out", "bias": "bias6"}])");
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->unit.layers[0].bias, DefineLayer::Bias::kPerGroup);
}

TEST_F(ReadUnitTest, BothLayoutsGiveTheSameMatrices) {
  const auto in_out = Read(R"([{"groups": 2, "weight": "in_out"}])");
  const auto out_in = Read(R"([{"groups": 2, "weight": "out_in", "layout": "out_in"}])");
  ASSERT_TRUE(in_out.ok() && out_in.ok());
  EXPECT_EQ(in_out->weights[0].weight, out_in->weights[0].weight);
  EXPECT_EQ(in_out->weights[0].weight[1], 4);
}

TEST_F(ReadUnitTest, RefusalsNameTheTensor) {
  const auto refusal = [this](const std::string& layers) {
    const auto unit = Read(layers);
    return unit.ok() ? "accepted" : unit.status().message();
  };
  EXPECT_NE(refusal(R"([{"groups": 4, "weight": "in_out"}])")
                .find("tensor 'in_out': expected 4 matrices [1, outputs] for 4 inputs in 4 groups"),
            std::string::npos);
  EXPECT_NE(refusal(R"([{"groups": 0, "weight": "in_out"}])").find("in 0 groups"),
            std::string::npos);
  EXPECT_NE(refusal(R"([{"groups": 2, "weights": "shared", "weight": "in_out"}])")
                .find("expected 1 matrices"),
            std::string::npos);
  EXPECT_NE(refusal(R"([{"groups": 2, "weight": "in_out", "bias": "bias4"}])")
                .find("layer 0, bias: expected 6 entries, found 4"),
            std::string::npos);
  EXPECT_NE(refusal(R"([{"groups": 2, "weights": "shared", "weight": "one", "skip": "mix"}])"),
            "accepted");
}

}  // namespace
}  // namespace kinglet
