#include "converters/recipe/recipe_skeleton.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_node.h"

namespace kinglet::recipe_skeleton_test {
namespace {

using Json = nlohmann::json;

struct Shaped {
  std::string name;
  std::vector<uint64_t> shape;
  ElementType type = ElementType::kF32;
};

Json Skeleton(const std::vector<Shaped>& tensors) {
  CheckpointTensors weights;
  for (const Shaped& tensor : tensors) {
    weights.push_back({tensor.name, tensor.shape, nullptr});
    weights.back().type = tensor.type;
  }
  return Json::parse(RecipeSkeleton({.checkpoint = "model.pt", .weights = weights}));
}

const std::vector<Shaped> kLstm = {
    {"lstm.weight_ih_l0", {512, 128}}, {"lstm.weight_hh_l0", {512, 128}},
    {"lstm.bias_ih_l0", {512}},        {"lstm.bias_hh_l0", {512}},
    {"lstm.weight_ih_l1", {512, 128}}, {"lstm.weight_hh_l1", {512, 128}},
    {"lstm.bias_ih_l1", {512}},        {"lstm.bias_hh_l1", {512}}};

// torch.nn.AdaptiveLogSoftmaxWithLoss(128, 90, [40, 60]) with a bias.
TEST(RecipeSkeleton, AdaptiveSoftmaxOfTorch) {
  std::vector<Shaped> tensors = kLstm;
  tensors.insert(tensors.end(), {{"emb.weight", {90, 128}},
                                 {"out.head.weight", {42, 128}},
                                 {"out.head.bias", {42}},
                                 {"out.tail.0.0.weight", {32, 128}},
                                 {"out.tail.0.1.weight", {20, 32}},
                                 {"out.tail.1.0.weight", {8, 128}},
                                 {"out.tail.1.1.weight", {30, 8}}});
  const Json recipe = Skeleton(tensors);
  EXPECT_EQ(recipe["softmax"], Json::parse(R"({
      "head": {"table": {"tensor": "out.head.weight", "rows": [0, 40]},
               "bias": {"tensor": "out.head.bias", "columns": [0, 40]}},
      "clusters": {"order": "forward",
                   "weight": {"tensor": "out.head.weight", "rows": [40, 42]},
                   "bias": {"tensor": "out.head.bias", "columns": [40, 42]}},
      "tails": [{"table": "out.tail.0.1.weight", "projection": "out.tail.0.0.weight"},
                {"table": "out.tail.1.1.weight", "projection": "out.tail.1.0.weight"}]})"));
  EXPECT_FALSE(recipe["comment"].contains("tensors that no key names"));
}

TEST(RecipeSkeleton, KnowsProjections) {
  const Json recipe = Skeleton({{"e", {90, 8}},
                                {"lstm.weight_ih_l0", {16, 8}},
                                {"lstm.weight_hh_l0", {16, 3}},
                                {"lstm.weight_hr_l0", {3, 4}},
                                {"lstm.bias_ih_l0", {16}},
                                {"lstm.bias_hh_l0", {16}}});
  EXPECT_EQ(recipe["recurrent"],
            Json({{"cell", "lstm"}, {"projection", true}, {"torch", "lstm"}, {"layers", 1}}));
}

TEST(RecipeSkeleton, FillsInWhatNamesAndShapesTell) {
  std::vector<Shaped> tensors = kLstm;
  tensors.insert(tensors.end(), {{"words_emb.weight", {90, 128}},
                                 {"out.weight", {90, 128}},
                                 {"out.bias", {90}},
                                 {"extra", {3}}});
  Json recipe = Skeleton(tensors);
  EXPECT_EQ(recipe["embedding"]["scale"], "?");
  EXPECT_EQ(recipe["embedding"]["table"], "words_emb.weight");
  EXPECT_EQ(recipe["recurrent"], Json({{"cell", "lstm"}, {"torch", "lstm"}, {"layers", 2}}));
  EXPECT_EQ(recipe["softmax"], Json({{"table", "out.weight"}, {"bias", "out.bias"}}));
  EXPECT_EQ(recipe["comment"]["tensors that no key names"], Json({{"extra", "f32 [3]"}}));
  // Once a person fills in the scale, the skeleton is a recipe: only the tensors have to exist.
  recipe["embedding"]["scale"] = 1;
  const auto node = RecipeNode::Parse("r.json", recipe.dump());
  ASSERT_TRUE(node.ok()) << node.status().message();
  EXPECT_TRUE(ParseRecipe(*node).ok()) << ParseRecipe(*node).status().message();
}

// fastai 1's names, with the copies that weight drop leaves, and 0.7's.
TEST(RecipeSkeleton, TheTrainedWeightsOfAllModules) {
  for (const bool newer : {true, false}) {
    std::vector<Shaped> tensors = {
        {"0.encoder.weight", {9, 6}},
        {newer ? "0.encoder_dp.emb.weight" : "0.encoder_with_dropout.embed.weight", {9, 6}}};
    for (const std::string layer : {"0.cells.0.", "0.cells.1."}) {
      const std::string module = layer + "module.";
      tensors.push_back({(newer ? layer : module) + "weight_hh_l0_raw", {24, 6}});
      tensors.push_back({module + "weight_ih_l0", {24, 6}});
      if (newer) tensors.push_back({module + "weight_hh_l0", {24, 6}});
      tensors.push_back({module + "bias_ih_l0", {24}});
      tensors.push_back({module + "bias_hh_l0", {24}});
    }
    tensors.insert(tensors.end(), {{"1.decoder.weight", {9, 6}}, {"1.decoder.bias", {9}}});
    const Json recipe = Skeleton(tensors);
    const Json& recurrent = recipe["recurrent"];
    EXPECT_EQ(recurrent["cell"], "lstm");
    EXPECT_EQ(recurrent["gates"], "ifgo");
    EXPECT_EQ(recurrent["forget_bias"], 0);
    ASSERT_EQ(recurrent["layers"].size(), 2u) << recipe.dump();
    EXPECT_EQ(recurrent["layers"][1],
              Json({{"input_weight", "0.cells.1.module.weight_ih_l0"},
                    {"input_bias", "0.cells.1.module.bias_ih_l0"},
                    {"recurrent_weight",
                     newer ? "0.cells.1.weight_hh_l0_raw" : "0.cells.1.module.weight_hh_l0_raw"},
                    {"recurrent_bias", "0.cells.1.module.bias_hh_l0"}}));
    EXPECT_EQ(recipe["embedding"]["table"], "0.encoder.weight");
    EXPECT_EQ(recipe["softmax"]["table"], "1.decoder.weight");
    EXPECT_EQ(recipe.contains("unused"), newer);
    if (newer) {
      EXPECT_EQ(recipe["unused"],
                Json({"0.cells.0.module.weight_hh_l0", "0.cells.1.module.weight_hh_l0"}));
      EXPECT_EQ(recipe["comment"]["weights that training changes"].size(), 2u);
    }
  }
}

// Without weight drop the layers' modules have one name.
TEST(RecipeSkeleton, CountsModules) {
  std::vector<Shaped> tensors;
  for (int i = 0; i < 3; ++i) {
    const std::string module = "net.0." + std::to_string(i) + ".gru.";
    tensors.push_back({module + "weight_ih_l0", {18, 6}});
    tensors.push_back({module + "weight_hh_l0", {18, 6}});
  }
  EXPECT_EQ(Skeleton(tensors)["recurrent"],
            Json({{"cell", "gru"}, {"torch", "net.0.{}.gru"}, {"layers", 3}}));
}

// A weight that only a computation gives is left open, and named.
TEST(RecipeSkeleton, WeightsOfSeveralTensorsAreLeftOpen) {
  const Json recipe = Skeleton({{"emb.weight", {9, 6}},
                                {"rnn.weight_ih_l0", {24, 6}},
                                {"rnn.weight_hh_l0_g", {24, 1}},
                                {"rnn.weight_hh_l0_v", {24, 6}},
                                {"decoder.weight_g", {9, 1}},
                                {"decoder.weight_v", {9, 6}},
                                {"out.weight_orig", {9, 6}},
                                {"out.weight_mask", {9, 6}}});
  EXPECT_EQ(recipe["recurrent"]["layers"],
            Json::array({{{"input_weight", "rnn.weight_ih_l0"}, {"recurrent_weight", "?"}}}));
  EXPECT_EQ(recipe["softmax"]["table"], "?");
  EXPECT_EQ(recipe["comment"]["weights that training changes"].size(), 3u);
}

TEST(RecipeSkeleton, DpqAndCodes) {
  const Json dpq = Skeleton({{"inp.query.weight", {90, 32}},
                             {"inp.key", {1, 16, 4}},
                             {"inp.value", {1, 16, 4}},
                             {"inp.bn.running_mean", {128}},
                             {"inp.bn.running_var", {128}}});
  EXPECT_EQ(dpq["embedding"]["table"]["dpq"], Json({{"method", "?"},
                                                    {"positions", 8},
                                                    {"query", "inp.query.weight"},
                                                    {"keys", "inp.key"},
                                                    {"values", "inp.value"},
                                                    {"combine", "?"},
                                                    {"batch_norm", "responses"},
                                                    {"mean", "inp.bn.running_mean"},
                                                    {"variance", "inp.bn.running_var"},
                                                    {"epsilon", "?"}}));
  EXPECT_EQ(dpq["recurrent"], "?");
  const Json codes =
      Skeleton({{"out.table", {64, 4}}, {"out.map", {90, 8}, ElementType::kI64}, {"bias", {90}}});
  EXPECT_EQ(codes["softmax"]["table"]["codes"], Json({{"codebook", "out.table"},
                                                      {"codes", "out.map"},
                                                      {"combine", "?"},
                                                      {"pools", "?"},
                                                      {"indices", "?"}}));
  EXPECT_EQ(codes["softmax"]["bias"], "bias");
}

// Only a person can decide which of several bands is the table.
TEST(RecipeSkeleton, LeavesBandsOpen) {
  const Json recipe = Skeleton({{"emb.0.weight", {10, 8}}, {"emb.1.weight", {80, 2}}});
  EXPECT_EQ(recipe["embedding"]["table"], "?");
  EXPECT_EQ(recipe["comment"]["tensors that no key names"].size(), 2u);
  EXPECT_EQ(Skeleton({})["embedding"]["table"], "?");
}

TEST(RecipeSkeleton, TheNearestFamily) {
  const std::vector<Shaped> known = {{"encoder.weight", {9, 3}},    {"rnn.weight_ih_l0", {12, 3}},
                                     {"rnn.weight_hh_l0", {12, 3}}, {"rnn.bias_ih_l0", {12}},
                                     {"rnn.bias_hh_l0", {12}},      {"decoder.weight", {9, 3}},
                                     {"decoder.bias", {9}}};
  Json recipe = Skeleton(known);
  EXPECT_EQ(recipe["family"], "pytorch-examples");
  EXPECT_FALSE(recipe.contains("tables"));
  std::vector<Shaped> without(known.begin() + 1, known.end());
  without.push_back({"encoder.codes", {9, 2}});
  recipe = Skeleton(without);
  EXPECT_EQ(recipe["tables"], Json({{"encoder.weight", "?"}}));
  EXPECT_TRUE(recipe["comment"]["tensors that no key names"].contains("encoder.codes"));
  std::vector<Shaped> prefixed = known;
  for (Shaped& tensor : prefixed) tensor.name = "model." + tensor.name;
  recipe = Skeleton(prefixed);
  EXPECT_EQ(recipe["prefix"], "model.");
  EXPECT_EQ(recipe["family"], "pytorch-examples");
}

}  // namespace
}  // namespace kinglet::recipe_skeleton_test
