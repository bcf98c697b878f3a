#include "converters/recipe/recipe_embedding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recipe_embedding_test {
namespace {

EmbeddingRecipe EmbeddingOf(const std::string& json) {
  return *RecipeOf(R"({"embedding": )" + json + "}").embedding;
}
std::vector<std::string> TensorNames(const LoadedModel& model) {
  std::vector<std::string> names;
  for (const EncodedTensor& tensor : model.draft.tensors) names.push_back(tensor.name);
  return names;
}

const std::string kUnit = R"({"scale": 1, "table": {"define": {"map": [{"table": "e", "scale": 1}],
    "layers": [{"layout": "out_in", "weight": "w", "activation": "none", "residual": "none"}]}}})";

CheckpointTensors Weights() {
  return {RandomTensor("e", {4, 3}), RandomTensor("f", {5, 2}), RandomTensor("p", {3, 2}),
          RandomTensor("w", {6, 3})};
}

TEST(MakeEmbedding, NamesTensorsAfterItAndTheirBin) {
  const CheckpointTensors weights = Weights();
  Network parts(weights);
  const auto embedding = MakeEmbedding(
      EmbeddingOf(R"({"scale": 2, "bins": [{"table": "e"}, {"table": "f", "projection": "p"}]})"),
      "word_emb", 1, parts);
  ASSERT_TRUE(embedding.ok()) << embedding.status().message();
  EXPECT_EQ(embedding->name, "word_emb");
  EXPECT_EQ(embedding->width, 3u);
  EXPECT_EQ(embedding->scale, 2);
  EXPECT_EQ(embedding->bins[1].first, 4u);
  EXPECT_EQ(embedding->bins[1].size, 5u);
  EXPECT_EQ(parts.model.draft.description.vocabulary_size, 9u);
  EXPECT_EQ(
      TensorNames(parts.model),
      (std::vector<std::string>{"word_emb.0.table", "word_emb.1.table", "word_emb.1.projection"}));
}

TEST(MakeEmbedding, AUnitStaysOnlyIfItIsAskedFor) {
  const CheckpointTensors weights = Weights();
  EmbeddingRecipe recipe = EmbeddingOf(kUnit);
  Network table(weights), kept(weights);
  EXPECT_EQ(MakeEmbedding(recipe, "x", 1, table)->width, 6u);
  EXPECT_EQ(TensorNames(table.model), std::vector<std::string>{"x.table"});
  KeepUnits(3, recipe);
  const auto embedding = MakeEmbedding(recipe, "x", 1, kept);
  EXPECT_EQ(embedding->width, 6u);
  ASSERT_EQ(embedding->units.size(), 1u);
  EXPECT_EQ(embedding->units[0].cache_rows, 3u);
  EXPECT_EQ(TensorNames(kept.model), (std::vector<std::string>{"x.map.table", "x.unit.0.weight"}));
}

TEST(MakeEmbedding, Refusals) {
  const CheckpointTensors weights = Weights();
  Network parts(weights);
  EXPECT_EQ(
      MakeEmbedding(EmbeddingOf(R"({"scale": 1, "bins": []})"), "x", 1, parts).status().message(),
      "recipe: x: expected 1 to 4096 bins, found 0");
  EmbeddingRecipe recipe = EmbeddingOf(kUnit);
  KeepUnits(0, recipe);
  EXPECT_EQ(MakeEmbedding(recipe, "x", 1, parts).status().message(),
            "recipe: x, cache_rows: expected 1 to 2147483647, found 0");
}

}  // namespace
}  // namespace kinglet::recipe_embedding_test
