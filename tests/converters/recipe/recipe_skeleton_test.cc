#include "converters/recipe/recipe_skeleton.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_node.h"
#include "converters/sources/source_file.h"

namespace kinglet::recipe_skeleton_test {
namespace {

using Json = nlohmann::json;

struct Shaped {
  std::string name;
  std::vector<uint64_t> shape;
  ElementType type = ElementType::kF32;
};

Json Skeleton(const std::vector<Shaped>& tensors) {
  SourceWeights weights;
  for (const Shaped& tensor : tensors) {
    weights.push_back({tensor.name, tensor.shape, nullptr});
    weights.back().type = tensor.type;
  }
  return Json::parse(RecipeSkeleton(weights));
}

const std::vector<Shaped> kLstm = {
    {"lstm.weight_ih_l0", {512, 128}}, {"lstm.weight_hh_l0", {512, 128}},
    {"lstm.bias_ih_l0", {512}},        {"lstm.bias_hh_l0", {512}},
    {"lstm.weight_ih_l1", {512, 128}}, {"lstm.weight_hh_l1", {512, 128}},
    {"lstm.bias_ih_l1", {512}},        {"lstm.bias_hh_l1", {512}}};

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
  // It is a recipe once a person fills in the scale: only the tensors have to exist.
  recipe["embedding"]["scale"] = 1;
  const auto node = RecipeNode::Parse("r.json", recipe.dump());
  ASSERT_TRUE(node.ok()) << node.status().message();
  EXPECT_TRUE(ParseRecipe(*node).ok()) << ParseRecipe(*node).status().message();
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

// Which of several bands is the table only a person can say.
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
