#include "converters/recipe/parse_transformer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::parse_transformer_test {
namespace {

const std::string kLayer = R"({"attention_norm": {"gain": "{}.g", "offset": "{}.o"},
    "qkv": "{}.qkv", "out": "{}.out", "inner_norm": {"gain": "{}.g2", "offset": "{}.o2"},
    "inner": "{}.in", "inner_bias": "{}.ib", "outer": "{}.on", "outer_bias": "shared"})";

// A transformer with one of its keys as `json`, or without it.
std::string With(const std::string& key, const std::string& json) {
  std::vector<std::pair<std::string, std::string>> members = {{"heads", "2"},
                                                              {"window", "8"},
                                                              {"start", "\"masked\""},
                                                              {"norm", "\"post\""},
                                                              {"epsilon", "1e-5"},
                                                              {"layout", "\"out_in\""},
                                                              {"qkv_rows", "\"parts\""},
                                                              {"positions", "\"slots\""},
                                                              {"layers", "2"},
                                                              {"layer", kLayer}};
  bool known = false;
  std::string text;
  for (auto& [name, value] : members) {
    if (name == key) {
      known = true;
      value = json;
    }
    if (!value.empty()) text += (text.empty() ? "\"" : ", \"") + name + "\": " + value;
  }
  if (!known && !key.empty()) text += ", \"" + key + "\": " + json;
  return "{" + text + "}";
}

Result<TransformerRecipe> Parsed(const std::string& json) {
  std::vector<std::string> references;
  return ParseTransformer(NodeOf(json), references);
}

TEST(ParseTransformer, PutsTheLayersNumberIntoNames) {
  std::vector<std::string> references;
  const auto recipe = ParseTransformer(NodeOf(With("", "")), references);
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  ASSERT_EQ(recipe->layers.size(), 2u);
  EXPECT_EQ(recipe->layers[0].qkv[0].name, "0.qkv");
  EXPECT_EQ(recipe->layers[1].inner_norm.offset.name, "1.o2");
  EXPECT_EQ(recipe->layers[1].outer_bias.name, "shared");
  EXPECT_EQ(references.size(), 20u);
  EXPECT_EQ(recipe->norm_order, NormOrder::kPost);
  EXPECT_FALSE(recipe->by_head);
}

TEST(ParseTransformer, TheLayoutOrientsMatrices) {
  std::string layer = kLayer;
  layer.replace(layer.find("\"{}.in\""), 7, R"({"tensor": "{}.in", "transpose": false})");
  layer.insert(1, R"("positions": "{}.pos", )");
  std::string json = With("layer", layer);
  json.replace(json.find("\"slots\""), 7, R"({"relative": {"divisor": "half", "clamp": "none"}})");
  for (const bool in_out : {false, true}) {
    if (in_out) json.replace(json.find("out_in"), 6, "in_out");
    const auto recipe = Parsed(json);
    ASSERT_TRUE(recipe.ok()) << recipe.status().message();
    const TransformerRecipe::Layer& parsed = recipe->layers[1];
    EXPECT_EQ(parsed.qkv[0].transpose, in_out);
    EXPECT_EQ(parsed.outer.transpose, in_out);
    EXPECT_EQ(parsed.positions->transpose, in_out);
    EXPECT_TRUE(parsed.out.oriented);
    EXPECT_FALSE(parsed.inner.transpose);
  }
}

TEST(ParseTransformer, EveryKindOfPositions) {
  const auto relative =
      Parsed(With("positions", R"({"relative": {"frequencies": "f", "clamp": 3}})"));
  EXPECT_EQ(std::get<TransformerRecipe::Relative>(relative->positions).clamp, 3u);
  const auto unlimited =
      Parsed(With("positions", R"({"relative": {"divisor": "half", "clamp": "none"}})"));
  EXPECT_EQ(std::get<TransformerRecipe::Relative>(unlimited->positions).clamp, std::nullopt);
  const auto sinusoids =
      Parsed(With("positions", R"({"sinusoids": {"divisor": "half_minus_one", "first": 2}})"));
  EXPECT_EQ(std::get<TransformerRecipe::Sinusoids>(sinusoids->positions).first, 2u);
  const auto table = Parsed(With("positions", R"({"table": "p"})"));
  EXPECT_EQ(std::get<TransformerRecipe::Table>(table->positions).rows.name, "p");
}

// What frameworks and papers do in several ways has no default.
TEST(ParseTransformer, Refusals) {
  const std::pair<std::string, std::string> cases[] = {
      {With("heads", ""), "expected \"heads\", found none"},
      {With("window", ""), "expected \"window\", found none"},
      {With("start", ""), "expected \"start\", found none"},
      {With("norm", ""), "expected \"norm\", found none"},
      {With("epsilon", ""), "expected \"epsilon\", found none"},
      {With("layout", ""), "expected \"layout\", found none"},
      {With("qkv_rows", ""), "expected \"qkv_rows\", found none"},
      {With("positions", ""), "expected \"positions\", found none"},
      {With("layers", ""), "expected \"layers\", found none"},
      {With("layer", ""), "expected \"layer\", found none"},
      {With("layers", "0"), "/layers: expected 1 to"},
      {With("layers", "[" + kLayer + "]"), "/layer: expected \"layer\" only with a number"},
      {With("start", "\"ones\""), "/start: expected \"masked\", \"zeros\" or \"zero_memory\""},
      {With("positions", "\"relative\""), "/positions: expected \"slots\""},
      {With("positions", "{}"), "/positions: expected \"slots\" or one kind of positions, found 0"},
      {With("positions", R"({"relative": {"clamp": 3}})"), "expected \"divisor\", found none"},
      {With("positions", R"({"relative": {"divisor": "half"}})"), "expected \"clamp\", found none"},
      {With("positions", R"({"relative": {"divisor": "half", "clamp": "all"}})"),
       "/clamp: expected \"none\""},
      {With("positions", R"({"sinusoids": {"divisor": "half"}})"),
       "expected \"first\", found none"},
      {With("positions", R"({"sinusoids": {"frequencies": "f", "divisor": "half", "first": 0}})"),
       "/sinusoids: expected \"frequencies\" or \"divisor\", found both"},
      {With("final_norm", R"({"gain": "g"})"), "/final_norm: expected \"offset\", found none"},
      {With("layer", R"({"qkv": "q"})"), "/layer: expected \"attention_norm\", found none"},
  };
  for (const auto& [json, message] : cases) {
    const Status status = Parsed(json).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << json;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  }
  std::string three = kLayer;
  three.replace(three.find("\"{}.qkv\""), 8, R"(["q", "k", "v"])");
  EXPECT_NE(Parsed(With("layer", three)).status().message().find("qkv has three tensors"),
            std::string::npos);
  three.replace(three.find(R"(["q", "k", "v"])"), 15, R"(["q", "k"])");
  EXPECT_NE(Parsed(With("layer", three)).status().message().find("queries, keys and values"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::parse_transformer_test
