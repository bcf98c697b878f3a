#include "converters/recipe/recipe_blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "converters/recipe/recipe_model.h"
#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recipe_blocks_test {
namespace {

// An embedding with a dense layer; the weight's rows are divided among two heads.
std::string DenseModel(const std::string& layer, const std::string& layout = "out_in") {
  return R"({"layout": ")" + layout + R"(", "blocks": [
      {"block": "adaptive_embedding", "name": "words", "width": 2, "scale": 1,
       "bins": [{"first": 0, "size": 3, "table": "e"}]},
      {"block": "dense_layers", "name": "dense", "place": "input", "input": "as_is", "layers": [)" +
         layer + "]}]}";
}

CheckpointTensors Weights() {
  return {FloatTensor("e", {3, 2}, {1, 2, 3, 4, 5, 6}), FloatTensor("q", {2, 2}, {1, 2, 3, 4}),
          FloatTensor("k", {2, 2}, {11, 12, 13, 14}), FloatTensor("b", {2}, {7, 8}),
          FloatTensor("pe", {3, 1, 2}, {0, 1, 2, 3, 4, 5})};
}

std::string Refusal(const std::string& json) {
  auto recipe = ParseRecipe(NodeOf(json));
  if (!recipe.ok()) return recipe.status().message();
  recipe->unused = {"*"};
  const CheckpointTensors weights = Weights();
  return ModelFromRecipe(*recipe, weights, 1).status().message();
}

TEST(RecipeBlocks, TensorsArePartsJoinedAndDividedByHead) {
  std::vector<std::string> references;
  const RecipeNode root = NodeOf(R"({"layout": "in_out", "blocks": [
      {"block": "transformer_decoder", "name": "d", "width": 2, "heads": 2, "key_size": 1,
       "value_size": 1, "window": 3, "start": "masked", "norm_order": "post", "epsilon": 0.001,
       "positions": {"kind": "table", "table": "pe"}, "activation": "relu",
       "layers": [{"qkv_weight": {"join": [{"tensor": "q", "transpose": false}, "k"], "heads": 2},
                   "out_weight": "q", "inner_weight": "k", "inner_bias": "b",
                   "outer_weight": {"tensor": "e", "rows": [1, 3]}, "outer_bias": "b"}]}]})");
  const auto recipe = ParseBlocks(root, references);
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(references, (std::vector<std::string>{"pe", "q", "k", "q", "k", "b", "e", "b"}));
  const CheckpointTensors weights = Weights();
  Network network(weights);
  ASSERT_TRUE(AddBlocks(*recipe, network).ok());
  LoadedModel model = network.Finish();
  ASSERT_TRUE(ReadTensors(model).ok());
  const auto& decoder = std::get<TransformerDecoder>(model.draft.description.blocks.at(0));
  EXPECT_EQ(decoder.norm_order, NormOrder::kPost);
  const TransformerLayer& layer = decoder.layers.at(0);
  const auto values = [&](TensorId id) { return DecodedValues(model.draft.tensors[id]); };
  // A head has a row of q, which is not transposed, and a column of k.
  EXPECT_EQ(values(layer.qkv_weight), (std::vector<float>{1, 2, 11, 13, 3, 4, 12, 14}));
  EXPECT_EQ(values(layer.out_weight), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(values(layer.outer_weight), (std::vector<float>{3, 5, 4, 6}));
  const TensorId positions = std::get<PositionTable>(decoder.positions).table;
  EXPECT_EQ(model.draft.tensors[positions].shape, (Shape{3, 2}));
  EXPECT_EQ(layer.inner_bias, layer.outer_bias);
  // Neither positions nor biases are pruned.
  EXPECT_EQ(model.prunable.size(), 4u);
  EXPECT_EQ(model.quantisable.size(), 5u);
}

// The projection of relative positions is a matrix, which the layout transposes; "{}" is a layer's
// number.
TEST(RecipeBlocks, TransformerRepeatsALayer) {
  std::vector<std::string> references;
  const auto recipe =
      ParseTransformer(NodeOf(R"({"layout": "in_out", "qkv_rows": "heads", "width": 2, "heads": 1,
      "key_size": 2, "value_size": 2, "window": 3, "start": "zeros", "norm_order": "pre",
      "epsilon": 0.001, "activation": "relu",
      "positions": {"kind": "relative_sinusoids", "frequencies":
          {"join": [], "change": [{"transformer_xl_frequencies": 4}], "shape": [2]}},
      "layers": {"count": 2, "each": {"qkv_weight": "{}", "positions": "{}", "out_weight": "0",
          "start": {"join": ["0", "b"], "change": [{"first": 2}], "shape": [2]},
          "inner_weight": {"tensor": "{}", "transpose": false}, "inner_bias": "b",
          "outer_weight": "1", "outer_bias": "b"}}})"),
                       references);
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  const CheckpointTensors weights = {FloatTensor("0", {2, 2}, {1, 2, 3, 4}),
                                     FloatTensor("1", {2, 2}, {5, 6, 7, 8}),
                                     FloatTensor("b", {2}, {9, 10})};
  Network network(weights);
  ASSERT_TRUE(AddBlocks(*recipe, network).ok());
  LoadedModel model = network.Finish();
  ASSERT_TRUE(ReadTensors(model).ok());
  const auto& layer =
      std::get<TransformerDecoder>(model.draft.description.blocks.at(0)).layers.at(1);
  const auto values = [&](TensorId id) { return DecodedValues(model.draft.tensors[id]); };
  EXPECT_EQ(values(layer.qkv_weight), (std::vector<float>{5, 7, 6, 8}));
  EXPECT_EQ(values(*layer.positions), (std::vector<float>{5, 7, 6, 8}));
  EXPECT_EQ(values(layer.inner_weight), (std::vector<float>{5, 6, 7, 8}));
  EXPECT_EQ(values(layer.out_weight), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(values(*layer.start), (std::vector<float>{1, 2}));
}

// Shapes do not tell the order of rows, so the recipe states it: parts become heads.
TEST(RecipeBlocks, TransformerStatesTheOrderOfItsRows) {
  const auto json = [](const std::string& rows, const std::string& qkv) {
    return R"({"layout": "out_in", )" + rows + R"("width": 1, "heads": 2, "key_size": 1,
      "value_size": 2, "window": 3, "start": "masked", "norm_order": "post", "epsilon": 0.001,
      "activation": "relu", "positions": {"kind": "none"}, "layers": [{"qkv_weight": )" +
           qkv + R"(, "out_weight": "o", "inner_weight": "i", "inner_bias": "b",
                     "outer_weight": "i", "outer_bias": "b"}]})";
  };
  const CheckpointTensors weights = {FloatTensor("qkv", {8, 1}, {1, 2, 3, 4, 5, 6, 7, 8}),
                                     FloatTensor("q", {2, 1}, {1, 2}),
                                     FloatTensor("k", {2, 1}, {3, 4}),
                                     FloatTensor("v", {4, 1}, {5, 6, 7, 8}),
                                     FloatTensor("o", {1, 4}, {1, 2, 3, 4}),
                                     FloatTensor("i", {1, 1}, {1}),
                                     FloatTensor("b", {1}, {1})};
  for (const auto& [rows, qkv, expected] :
       {std::tuple("parts", R"("qkv")", std::vector<float>{1, 3, 5, 6, 2, 4, 7, 8}),
        {"parts", R"({"join": ["q", "k", "v"]})", {1, 3, 5, 6, 2, 4, 7, 8}},
        {"heads", R"("qkv")", {1, 2, 3, 4, 5, 6, 7, 8}}}) {
    std::vector<std::string> references;
    const auto recipe = ParseTransformer(
        NodeOf(json("\"qkv_rows\": \"" + std::string(rows) + "\", ", qkv)), references);
    ASSERT_TRUE(recipe.ok()) << recipe.status().message();
    Network network(weights);
    ASSERT_TRUE(AddBlocks(*recipe, network).ok());
    LoadedModel model = network.Finish();
    ASSERT_TRUE(ReadTensors(model).ok());
    const auto& layer =
        std::get<TransformerDecoder>(model.draft.description.blocks.at(0)).layers.at(0);
    EXPECT_EQ(DecodedValues(model.draft.tensors[layer.qkv_weight]), expected) << rows << qkv;
  }
  std::vector<std::string> references;
  const auto refusal = [&](const std::string& rows, const std::string& qkv) {
    return ParseTransformer(NodeOf(json(rows, qkv)), references).status().message();
  };
  EXPECT_NE(refusal("", R"("qkv")").find("\"qkv_rows\""), std::string::npos);
  EXPECT_NE(refusal(R"("qkv_rows": "parts", )", R"({"join": ["qkv"], "heads": 2})").find("alone"),
            std::string::npos);
}

TEST(RecipeBlocks, Refusals) {
  const std::string layer =
      R"({"weight": "q", "bias": "b", "norm": "none", "epsilon": 1, "activation": "none"})";
  const struct {
    std::string json, part;
  } cases[] = {
      {R"({"blocks": []})", "\"layout\""},
      {R"({"layout": "out_in", "blocks": [{"block": "tower"}]})", "adaptive_embedding"},
      {R"({"layout": "out_in", "blocks": [{"block": "neural_cache", "name": "c", "size": 3}]})",
       "capacity"},
      {R"({"layout": "out_in", "blocks": [], "embedding": {}})", "(delete one)"},
      {DenseModel(R"({"weight": "q", "bias": "b", "norm": "none", "activation": "none"})"),
       "epsilon"},
      {DenseModel(R"({"weight": "q", "bias": "b", "norm": "none", "epsilon": 1,
                      "activation": "none", "wieght": "k"})"),
       "found 'wieght'"},
      {DenseModel(R"({"weight": "q", "bias": "b", "norm": "none", "epsilon": 1,
                      "activation": "cosine"})"),
       "cosine"},
      {R"({"layout": "out_in", "blocks": [{"block": "dense_layers", "name": "d", "place": "input",
           "input": "as_is", "layers": {"count": 1000000000, "each": {}}}]})",
       "at most"},
      {R"({"layout": "out_in", "blocks": [{"block": "dense_layers", "name": "d", "place": "input",
           "input": "as_is", "layers": {"count": 1, "each": {}, "first": 2}}]})",
       "'first'"},
      {DenseModel(R"({"weight": {"join": []}, "bias": "b", "norm": "none", "epsilon": 1,
                      "activation": "none"})"),
       "\"shape\", as no tensor is joined"},
      {DenseModel(R"({"weight": {"join": ["q"], "heads": 0}, "bias": "b", "norm": "none",
                      "epsilon": 1, "activation": "none"})"),
       "2 to 4 sizes"},
      {DenseModel(R"({"weight": {"join": ["q"], "change": [{"halve": 2}]}, "bias": "b",
                      "norm": "none", "epsilon": 1, "activation": "none"})"),
       "times_exp_of_last"},
      {DenseModel(R"({"weight": {"join": ["q"], "shape": [1, 2, 3]}, "bias": "b",
                      "norm": "none", "epsilon": 1, "activation": "none"})"),
       "one or two sizes"},
      {DenseModel(R"({"weight": {"join": ["q"], "role": "loved"}, "bias": "b",
                      "norm": "none", "epsilon": 1, "activation": "none"})"),
       "quantised"},
      {DenseModel(R"({"weight": {"join": ["q", "b"]}, "bias": "b", "norm": "none", "epsilon": 1,
                      "activation": "none"})"),
       "tensor 'b'"},
      {DenseModel(R"({"weight": "q", "bias": "absent", "norm": "none", "epsilon": 1,
                      "activation": "none"})"),
       "missing absent"},
      {R"({"layout": "out_in", "blocks": [{"block": "adaptive_embedding", "name": "e", "width": 2,
           "scale": 1, "bins": [{"first": 0, "size": 9999999999, "table": "e"}]}]})",
       "9999999999"},
  };
  for (const auto& [json, part] : cases) {
    const std::string message = Refusal(json);
    EXPECT_NE(message.find(part), std::string::npos) << json << "\n" << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(Refusal(DenseModel(layer)), "");
}

}  // namespace
}  // namespace kinglet::recipe_blocks_test
