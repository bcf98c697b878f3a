#include "converters/recipe/recipe_transformer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/recipe/recipe_model.h"
#include "format/model_file.h"
#include "tests/converters/recipe/recipe_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::recipe_transformer_test {
namespace {

// Two heads with keys of one entry and values of two; width 4.
CheckpointTensors Tensors() {
  std::vector<float> rows;  // row r of qkv is (r, r, r, r)
  for (int r = 0; r < 8; ++r) rows.insert(rows.end(), 4, static_cast<float>(r));
  const auto part = [&](const std::string& name, int first, uint64_t count) {
    const auto begin = rows.begin() + 4 * first;
    return FloatTensor(name, {count, 4}, {begin, begin + static_cast<ptrdiff_t>(4 * count)});
  };
  return {RandomTensor("e", {6, 4}),
          RandomTensor("out", {4, 4}),
          RandomTensor("g", {4}),
          FloatTensor("o", {4}, {1, 0, 0, 2}),
          RandomTensor("in", {5, 4}),
          RandomTensor("ib", {5}),
          RandomTensor("on", {4, 5}),
          RandomTensor("ob", {4}),
          part("qkv", 0, 8),
          part("q", 0, 2),
          part("k", 2, 2),
          part("v", 4, 4),
          FloatTensor("f", {2}, {1, 0.5F}),
          RandomTensor("r", {2, 4}),
          RandomTensor("u", {2}),
          RandomTensor("slots", {1, 3}),
          RandomTensor("table", {9, 1, 4})};
}

std::string Json(const std::string& qkv, const std::string& positions, const std::string& layer) {
  return R"({"embedding": {"scale": 1, "table": "e"}, "softmax": {"table": "e"}, "unused": ["*"],
    "transformer": {"heads": 2, "window": 3, "norm": "pre", "epsilon": 1e-5,
                    "layout": "out_in", )" +
         positions + R"(, "layers": [{"attention_norm": {"gain": "g", "offset": "o"}, "out": "out",
      "inner_norm": {"gain": "g", "offset": "o"}, "inner": "in", "inner_bias": "ib",
      "outer": "on", "outer_bias": "ob", "qkv": )" +
         qkv + layer + "}]}}";
}
const std::string kTable = R"("start": "masked", "positions": {"table": "table"})";
const std::string kRelative =
    R"("start": "zero_memory", "positions": {"relative": {"frequencies": "f", "clamp": 2}})";
const std::string kBiases = R"(, "positions": "r", "content_bias": "u", "position_bias": "u")";

Result<LoadedModel> Made(const std::string& json) {
  const CheckpointTensors weights = Tensors();
  return WithValues(ModelFromRecipe(RecipeOf(json), weights, 1));
}
// The first column of a tensor.
std::vector<int> Column(const LoadedModel& model, TensorId id) {
  const EncodedTensor& tensor = model.draft.tensors[id];
  const std::vector<float> values = DecodedValues(tensor);
  std::vector<int> column;
  for (uint64_t r = 0; r < tensor.shape[0]; ++r) {
    column.push_back(static_cast<int>(values[r * Cols(tensor.shape)]));
  }
  return column;
}

TEST(MakeTransformer, RowsAreOrderedByHead) {
  const std::vector<int> by_head = {0, 2, 4, 5, 1, 3, 6, 7};
  for (const std::string qkv : {R"("qkv")", R"(["q", "k", "v"])"}) {
    const bool joined = qkv == R"("qkv")";
    const auto model = Made(Json(qkv, (joined ? R"("qkv_rows": "parts", )" : "") + kTable, ""));
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto* decoder = FindBlock<TransformerDecoder>(model->draft.description);
    EXPECT_EQ(decoder->key_size, 1u);
    EXPECT_EQ(decoder->value_size, 2u);
    EXPECT_EQ(Column(*model, decoder->layers[0].qkv_weight), by_head) << qkv;
    const auto table = std::get<PositionTable>(decoder->positions);
    EXPECT_EQ(model->draft.tensors[table.table].shape, (Shape{3, 4}));
    const auto bytes = SerialiseModel(model->draft);
    ASSERT_TRUE(bytes.ok());
    EXPECT_TRUE(ModelFile::FromBytes(*bytes).ok())
        << ModelFile::FromBytes(*bytes).status().message();
  }
  const auto model = Made(Json(R"("qkv")", R"("qkv_rows": "heads", )" + kTable, ""));
  const auto* decoder = FindBlock<TransformerDecoder>(model->draft.description);
  EXPECT_EQ(Column(*model, decoder->layers[0].qkv_weight),
            (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Each row times the norm's bias (1, 0, 0, 2): keys of both heads, then values.
TEST(MakeTransformer, AZeroMemorySeesTheNormsBias) {
  for (const bool by_head : {false, true}) {
    const auto model = Made(Json(
        R"("qkv")", (by_head ? R"("qkv_rows": "heads", )" : R"("qkv_rows": "parts", )") + kRelative,
        kBiases));
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto* decoder = FindBlock<TransformerDecoder>(model->draft.description);
    EXPECT_EQ(decoder->start, StreamStart::kZeros);
    const TransformerLayer& layer = decoder->layers[0];
    ASSERT_TRUE(layer.start && layer.content_bias);
    EXPECT_EQ(DecodedValues(model->draft.tensors[*layer.start]),
              by_head ? (std::vector<float>{3, 15, 6, 9, 18, 21})
                      : (std::vector<float>{6, 9, 12, 15, 18, 21}));
    EXPECT_EQ(model->draft.tensors[*layer.content_bias].shape, (Shape{2, 1}));
    EXPECT_EQ(layer.content_bias, layer.position_bias);
    const auto bytes = SerialiseModel(model->draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_TRUE(ModelFile::FromBytes(*bytes).ok())
        << ModelFile::FromBytes(*bytes).status().message();
  }
}

TEST(MakeTransformer, Refusals) {
  const std::string parts = R"("qkv_rows": "parts", )";
  const std::string slots = parts + R"("start": "zeros", "positions": "slots")";
  const std::pair<std::string, std::string> cases[] = {
      {Json(R"("q")", parts + kTable, ""),
       "tensor 'q': expected queries and keys for 2 heads in addition to 4 rows of values, "
       "found 2 rows"},
      {Json(R"(["q", "k", "k"])", kTable, ""), "expected queries and keys for 2 heads"},
      {Json(R"(["q", "q", "e"])", kTable, ""), "expected queries and keys for 2 heads"},
      {Json(R"("qkv")", parts + R"("start": "masked", "positions": {"table": "e"})",
            R"(, "qkv_bias": "ib")"),
       "tensor 'ib': expected [8], found [5]"},
      {Json(R"("qkv")", parts + R"("start": "masked", "positions": {"table": "in"})", ""), ""},
      {Json(R"("qkv")", parts + R"("start": "masked", "positions": {"table": "ob"})", ""),
       "tensor 'ob': expected [3, 4] or more rows, found [4]"},
      {Json(R"("qkv")", slots, ""), "recipe: transformer.0.positions: expected a tensor"},
      {Json(R"("qkv")", slots, R"(, "positions": "r")"),
       "recipe: transformer.0.positions: expected [1, 3], found [2, 4] of 'r'"},
      {Json(R"("qkv")", parts + kTable, R"(, "content_bias": "u")"),
       "recipe: transformer.0.content_bias: expected no tensor"},
      {Json(R"("qkv")", parts + R"("start": "zero_memory", "positions": {"table": "table"})", ""),
       "recipe: transformer, start: expected \"masked\" or \"zeros\""},
  };
  for (const auto& [json, message] : cases) {
    const Status status = Made(json).status();
    if (message.empty()) {
      EXPECT_TRUE(status.ok()) << status.message();
      continue;
    }
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT) << json;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace kinglet::recipe_transformer_test
