#include "converters/recipe/recipe_unit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/recipe/recipe_model.h"
#include "format/writer.h"
#include "runtime/embedder.h"
#include "tests/converters/passes/flat_fixture.h"
#include "tests/converters/recipe/recipe_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::recipe_unit_test {
namespace {

TEST(ParseUnitLayer, ReadsEveryChoice) {
  const auto parsed = ParseUnitLayer(NodeOf(
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
  const auto plain =
      ParseUnitLayer(NodeOf(R"({"layout": "in_out", "activation": "none", "residual": "none"})"));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->layer, DefineLayer());
  EXPECT_EQ(plain->layout, DefineLayout::kInOut);
}

// A recipe must state what no shape shows.
TEST(ParseUnitLayer, DemandsWhatImplementationsDifferIn) {
  const auto refusal = [](const std::string& members) {
    return ParseUnitLayer(NodeOf("{" + members + "}")).status().message();
  };
  const std::string layout = R"("layout": "in_out")", activation = R"("activation": "none")",
                    residual = R"("residual": "none")", both = layout + ", " + activation;
  const std::string all = both + ", " + residual + ", ";
  const std::pair<std::string, std::string> cases[] = {
      {"", R"(expected "layout": "in_out" or "out_in", found none)"},
      {layout, R"(expected "activation": "none", "relu")"},
      {both, R"(expected "residual": "none", "before_activation")"},
      {all + R"("groups": 2)", R"(expected "shuffle": "none", "before_norm")"},
      {all + R"("norm": "whole")", R"(expected "epsilon", what the layer norm adds)"},
      {all + R"("skip": "mix")", R"(expected "order": "input_first" or "previous_first")"},
      {all + R"("skip": "sum")", "/skip: expected"}};
  for (const auto& [members, message] : cases) {
    EXPECT_NE(refusal(members).find(message), std::string::npos) << refusal(members);
  }
}

DefineRecipe UnitOf(const std::string& layers) {
  return std::get<DefineRecipe>(
      TableOf(R"({"define": {"map": [{"table": "t", "scale": 1}], "entry_layers": 0,
                             "every_layer": {"layout": "in_out", "shuffle": "none",
                                             "activation": "none", "order": "input_first",
                                             "residual": "none"}, "layers": )" +
              layers + "}}")
          .form);
}

class ReadUnitTest : public testing::Test {
 protected:
  const CheckpointTensors weights_ = {
      // Two matrices [2, 3], and their transposes.
      FloatTensor("in_out", {2, 2, 3}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}),
      FloatTensor("out_in", {2, 3, 2}, {1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60}),
      FloatTensor("one", {2, 3}, {1, 2, 3, 4, 5, 6}),
      RandomTensor("reduce", {5, 10}),
      RandomTensor("bias3", {3}),
      RandomTensor("bias6", {6}),
      RandomTensor("bias4", {4})};
  const Network network_{weights_};

  Result<RecipeUnit> Read(const std::string& layers) const {
    return ReadUnit(UnitOf(layers), 4, network_);
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

// Checkpoints of public implementations (tests/data/define/make_define.py), converted to a table
// and to a unit that stays in the model, against tables that PyTorch computed.
class PublicUnit : public testing::TestWithParam<const char*> {};

TEST_P(PublicUnit, EqualsPyTorchByARecipe) {
  const std::string name = GetParam(), path = KINGLET_TEST_DATA "/define/" + name;
  const auto opened = OpenCheckpointFile(path + ".pt");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const auto node = RecipeNode::Read(path + ".json");
  ASSERT_TRUE(node.ok()) << node.status().message();
  auto recipe = ParseRecipe(*node);
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  const std::vector<double> expected = ReadDoubles("define/" + name + "_table.npy");
  const auto table = WithValues(ModelFromRecipe(*recipe, opened->tensors, 1));
  ASSERT_TRUE(table.ok()) << table.status().message();
  // The difference of one rounding to float32.
  EXPECT_LT(LargestDifference(DecodedValues(table->draft.tensors[0]), expected), 6.1e-8);

  KeepUnits(4, *recipe);
  const auto kept = WithValues(ModelFromRecipe(*recipe, opened->tensors, 1));
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  const auto bytes = SerialiseModel(kept->draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto embedder = *Embedder::Create(*Model::FromBytes(*bytes, {.backend = "ref64"}));
  std::vector<double> found;
  for (uint32_t word = 0; word < kept->draft.description.vocabulary_size; ++word) {
    std::vector<double> row(embedder->width());
    ASSERT_TRUE(embedder->Vector(word, std::span(row)).ok());
    found.insert(found.end(), row.begin(), row.end());
  }
  EXPECT_LT(LargestDifference(found, expected), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, PublicUnit,
                         testing::Values("delight_full", "delight_adaptive", "delight_shuffled",
                                         "plain"),
                         [](const auto& instance) { return std::string(instance.param); });

// A unit stays where it makes vectors of the input: all, those of a bin, or what is projected.
TEST(KeptUnitRecipe, IsATableOfTheInput) {
  const CheckpointTensors weights = {RandomTensor("t", {5, 4}), RandomTensor("w", {4, 3}),
                                     RandomTensor("p", {2, 3}), RandomTensor("e", {5, 3})};
  const std::string unit =
      R"({"define": {"map": [{"table": "t", "scale": 1}],
                     "layers": [{"weight": "w", "layout": "in_out", "activation": "none",
                                 "residual": "none"}], "cache_rows": )";
  const auto message = [&](const std::string& json) {
    const auto model = WithValues(ModelFromRecipe(RecipeOf(json), weights, 1));
    return model.ok() ? "accepted" : model.status().message();
  };
  EXPECT_EQ(
      message(R"({"unused": ["p", "e"], "embedding": {"scale": 1, "table": )" + unit + "4}}}}"),
      "accepted");
  EXPECT_NE(
      message(R"({"unused": ["p", "e"], "embedding": {"scale": 1, "table": )" + unit + "0}}}}")
          .find("embedding, cache_rows: expected 1 to 2147483647, found 0"),
      std::string::npos);
  EXPECT_EQ(message(R"({"unused": ["e"], "embedding": {"scale": 1, "projection": "p", "table": )" +
                    unit + "4}}}}"),
            "accepted");
  EXPECT_EQ(message(R"({"unused": ["p"], "embedding": {"scale": 1, "bins": [{"table": )" + unit +
                    R"(4}}}, {"table": "e"}]}})"),
            "accepted");
}

}  // namespace
}  // namespace kinglet::recipe_unit_test
