#include "converters/recipe/recipe_family.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "converters/network/network.h"
#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recipe_family_test {
namespace {

// Weights of a family whose input is "words.weight", or the module "words".
CheckpointTensors Weights() {
  return {FloatTensor("words.weight", {3, 2}, {9, 9, 9, 9, 9, 9}),
          FloatTensor("map", {3, 2}, {1, 2, 3, 4, 5, 6}),
          FloatTensor("other", {1}, {7}),
          FloatTensor("w", {2, 2}, {1, 1, 0, 2}),
          FloatTensor("book", {2, 1}, {5, 6}),
          IntegerTensor("codes", {3, 2}, {0, 1, 1, 1, 1, 0})};
}
const std::string kDefine = R"({"define": {
    "map": [{"table": "map", "scale": 1}], "layers": [
      {"weight": "w", "layout": "out_in", "activation": "none", "residual": "none"}]}})";
const std::string kCodes = R"({"codes": {"combine": "concatenate", "pools": "one",
    "codebook": "book", "codes": "codes"}})";

Recipe InPlace(const std::string& name, const std::string& table, const std::string& more = "") {
  return RecipeOf(R"({"family": "f", "tables": {")" + name + "\": " + table + "}" + more + "}");
}
const CheckpointTensor* Find(const CheckpointTensors& weights, const std::string& name) {
  for (const CheckpointTensor& tensor : weights) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

TEST(FamilyTables, TheFamilySeesADenseTable) {
  const auto tables = FamilyTables::Make(InPlace("words.weight", kDefine), Weights(), {}, 2);
  ASSERT_TRUE(tables.ok()) << tables.status().message();
  const CheckpointTensor* made = Find(tables->weights(), "words.weight");
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->made, "words.weight");
  EXPECT_EQ(made->shape, (Shape{3, 2}));
  // Rows (a, b) become (a + b, 2 b).
  EXPECT_EQ(*made->values(), (std::vector<float>{3, 4, 7, 8, 11, 12}));
  ASSERT_NE(made->replaced, nullptr);
  EXPECT_EQ(*made->replaced->values(), std::vector<float>(6, 9));
  // The family may leave the table's tensors unclaimed, but no others.
  EXPECT_TRUE(Find(tables->weights(), "map")->spare);
  EXPECT_FALSE(Find(tables->weights(), "other")->spare);

  const auto coded = FamilyTables::Make(InPlace("words", kCodes), Weights(), {}, 2);
  ASSERT_TRUE(coded.ok()) << coded.status().message();
  EXPECT_EQ(*Find(coded->weights(), "words")->values(), (std::vector<float>{5, 6, 6, 6, 6, 5}));
  EXPECT_EQ(Find(coded->weights(), "words")->replaced, nullptr);
}

TEST(FamilyTables, WithoutTablesNothingChanges) {
  const auto tables = FamilyTables::Make(RecipeOf(R"({"family": "f"})"), Weights(), {}, 1);
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(tables->weights().size(), Weights().size());
  LoadedModel model;
  EXPECT_TRUE(tables->Place(model).ok());
}

// A family that divides its table into two bins and does not check whether it may.
LoadedModel Divided(const CheckpointTensors& weights, const std::string& name, bool in_two) {
  Network network(weights);
  AdaptiveEmbedding embedding;
  embedding.name = "in";
  embedding.width = 2;
  embedding.scale = 3;
  const CheckpointTensor* table = network.Claim(name, {3, 2});
  if (in_two) {
    embedding.bins = {
        {0, 1, network.Add("a", {1, 2}, Role::kPrunedAlso, table, Network::Origin{0, 0}), {}},
        {1, 2, network.Add("b", {2, 2}, Role::kPrunedAlso, table, Network::Origin{1, 0}), {}}};
  } else {
    embedding.bins = {{0, 3, network.AddWhole(*table, Role::kPrunedAlso), {}}};
  }
  network.Add("other", {1}, Role::kQuantised);
  network.model.draft.description.blocks.emplace_back(embedding);
  return network.Finish();
}

// A tensor next to the network, like an optimiser's, that no family reads.
TEST(FamilyTables, AFamilyMayLeaveUnusedTensors) {
  CheckpointTensors weights = {FloatTensor("a", {2}, {1, 2}), FloatTensor("extra.b", {1}, {3})};
  const auto tables =
      FamilyTables::Make(RecipeOf(R"({"family": "f", "unused": ["extra.*"]})"), weights, {}, 1);
  Network network(tables->weights());
  network.Add("a", {2}, Role::kKept);
  EXPECT_TRUE(network.CheckNames("a family").ok());
  Network without(weights);
  without.Add("a", {2}, Role::kKept);
  EXPECT_NE(without.CheckNames("a family").message().find("unused 'extra.b'"), std::string::npos);
}

TEST(FamilyTables, CodesStandWhereTheTableStood) {
  const auto tables = *FamilyTables::Make(InPlace("words", kCodes), Weights(), {}, 1);
  LoadedModel model = Divided(tables.weights(), "words", true);
  ASSERT_TRUE(tables.Place(model).ok());
  ASSERT_TRUE(ReadTensors(model).ok());
  const auto& tensors = model.draft.tensors;
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[3].name, "a.codebook");
  EXPECT_EQ(DecodedValues(tensors[3]), (std::vector<float>{5, 6}));
  const auto codes = [&](TensorId id) {
    const auto& coded = std::get<Coded>(tensors[id].values);
    EXPECT_EQ(coded.scheme.codebook, 3u);
    return std::get<std::vector<uint32_t>>(coded.codes);
  };
  EXPECT_EQ(codes(0), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(codes(1), (std::vector<uint32_t>{1, 1, 1, 0}));
  EXPECT_EQ(DecodedValues(tensors[2]), std::vector<float>{7});
  EXPECT_EQ(model.prunable, std::vector<TensorId>{3});
  EXPECT_EQ(model.quantisable, (std::vector<TensorId>{2, 3}));
}

TEST(FamilyTables, AnInputInPartsIsTheWholeInput) {
  const std::string parts = R"({"scale": 5, "bins": [
      {"table": {"tensor": "map", "rows": [0, 1]}},
      {"table": {"tensor": "map", "rows": [1, 3]},
       "projection": {"tensor": "w", "transpose": false}}]})";
  const auto tables = *FamilyTables::Make(InPlace("words", parts), Weights(), {}, 1);
  LoadedModel model = Divided(tables.weights(), "words", false);
  ASSERT_TRUE(tables.Place(model).ok());
  ASSERT_TRUE(ReadTensors(model).ok());
  const auto* embedding = FindBlock<AdaptiveEmbedding>(model.draft.description);
  EXPECT_EQ(embedding->scale, 5);
  ASSERT_EQ(embedding->bins.size(), 2u);
  EXPECT_EQ(embedding->bins[1].first, 1u);
  const auto values = [&](TensorId id) { return DecodedValues(model.draft.tensors[id]); };
  EXPECT_EQ(values(embedding->bins[0].table), (std::vector<float>{1, 2}));
  EXPECT_EQ(values(embedding->bins[1].table), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(values(*embedding->bins[1].projection), (std::vector<float>{1, 1, 0, 2}));

  LoadedModel divided = Divided(tables.weights(), "words", true);
  EXPECT_EQ(tables.Place(divided).message(),
            "recipe: tables, 'words': expected no \"scale\", as the table does not replace the "
            "entire input (delete it), found one");
  const auto unscaled = *FamilyTables::Make(
      InPlace("words", R"({"table": "map", "projection": {"tensor": "w", "transpose": false}})"),
      Weights(), {}, 1);
  divided = Divided(unscaled.weights(), "words", true);
  EXPECT_EQ(unscaled.Place(divided).message(),
            "recipe: tables, 'words': expected a single table, as it does not replace entire "
            "bins of the input, found projections, bins or a DeFINE unit that stays");
}

TEST(FamilyTables, Refusals) {
  CheckpointTensors lacks = Weights();
  lacks.erase(lacks.begin() + 1);
  const CheckpointTensors extra = {FloatTensor("file", {1}, {1})};
  const CheckpointTensors twice = {FloatTensor("other", {1}, {1})};
  const struct {
    CheckpointTensors weights, sources;
    const char* message;
  } cases[] = {{lacks, {}, "missing map"},
               {Weights(), extra, "unused 'file'"},
               {Weights(), twice, "tensor 'other': expected one of this name"}};
  for (const auto& one : cases) {
    const Status status =
        FamilyTables::Make(InPlace("words", kDefine), one.weights, one.sources, 1).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
    EXPECT_NE(status.message().find(one.message), std::string::npos) << status.message();
  }
  EXPECT_TRUE(
      FamilyTables::Make(InPlace("words", kDefine, R"(, "unused": ["file"])"), Weights(), extra, 1)
          .ok());
  const std::pair<const char*, const char*> texts[] = {
      {R"({"tables": {}, "embedding": {"table": "e"}})", "\"tables\" only with \"family\""},
      {R"({"family": "f", "tables": {"w": {"rows": "x"}}})", "/tables/w: expected a key"}};
  for (const auto& [json, message] : texts) {
    const Status status = ParseRecipe(NodeOf(json)).status();
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace kinglet::recipe_family_test
