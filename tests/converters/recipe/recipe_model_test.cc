#include "converters/recipe/recipe_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "tests/converters/recipe/recipe_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::recipe_model_test {
namespace {

// A network of 9 words: width 4, three units.
CheckpointTensors Small() {
  return {RandomTensor("emb", {9, 4}),
          RandomTensor("lstm.weight_ih_l0", {12, 4}),
          RandomTensor("lstm.weight_hh_l0", {12, 3}),
          RandomTensor("lstm.bias_ih_l0", {12}),
          RandomTensor("lstm.bias_hh_l0", {12}),
          RandomTensor("out", {9, 3}),
          RandomTensor("bias", {9}),
          RandomTensor("clusters", {2, 3})};
}
const std::string kLstm = R"("recurrent": {"cell": "lstm", "torch": "lstm", "layers": 1})";

Result<LoadedModel> Made(const std::string& json, const CheckpointTensors& weights) {
  return WithValues(ModelFromRecipe(RecipeOf(json), weights, 2));
}
// The model as its file describes it, or the error of making it.
Status Filed(const std::string& json, const CheckpointTensors& weights) {
  const auto model = Made(json, weights);
  if (!model.ok()) return model.status();
  const auto bytes = SerialiseModel(model->draft);
  if (!bytes.ok()) return bytes.status();
  return ModelFile::FromBytes(*bytes).status();
}

std::vector<std::string> NamesOf(const LoadedModel& model, const std::vector<TensorId>& ids) {
  std::vector<std::string> names;
  for (const TensorId id : ids) names.push_back(model.draft.tensors[id].name);
  return names;
}

TEST(ModelFromRecipe, AProjectionMakesTheOutput) {
  CheckpointTensors weights = {RandomTensor("emb", {9, 4}),
                               RandomTensor("lstm.weight_ih_l0", {12, 4}),
                               RandomTensor("lstm.weight_hh_l0", {12, 2}),
                               RandomTensor("lstm.weight_hr_l0", {2, 3}),
                               RandomTensor("lstm.bias_ih_l0", {12}),
                               RandomTensor("lstm.bias_hh_l0", {12}),
                               RandomTensor("out", {9, 2})};
  const std::string begin = R"({"embedding": {"scale": 1, "table": "emb"}, "recurrent": {"cell": )";
  const std::string layers = R"("layers": [{"input_weight": "lstm.weight_ih_l0",
      "input_bias": "lstm.bias_ih_l0", "recurrent_weight": "lstm.weight_hh_l0",
      "recurrent_bias": "lstm.bias_hh_l0", "projection": "lstm.weight_hr_l0"}]})";
  const std::string end = R"(, "softmax": {"table": "out"}})";
  const std::string listed =
      begin + R"("lstm", "gates": "ifgo", "forget_bias": 0, )" + layers + end;
  const std::string torch =
      begin + R"("lstm", "torch": "lstm", "projection": true, "layers": 1})" + end;
  for (const std::string& json : {listed, torch}) {
    const auto model = Made(json, weights);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const RecurrentLayer& layer =
        FindBlock<RecurrentDecoder>(model->draft.description)->layers.at(0);
    EXPECT_EQ(layer.units, 3u);
    EXPECT_EQ(layer.Outputs(), 2u);
    EXPECT_EQ(DecodedValues(model->draft.tensors[layer.projection->weight]), *weights[3].values());
    EXPECT_EQ(*SerialiseModel(model->draft), *SerialiseModel(Made(listed, weights)->draft));
  }
  EXPECT_EQ(
      Made(begin + R"("gru", "gates": "rzn", "weighs": "old", "reset": "after", )" + layers + end,
           weights)
          .status()
          .message(),
      "recipe: recurrent.0.projection: expected none, as the cell is no LSTM, found one");
}

// The cell adds both biases up, so the constant belongs to one of them.
TEST(ModelFromRecipe, AForgetBiasIsAddedOnce) {
  const CheckpointTensors weights = Small();
  const auto bias = [&](size_t tensor) { return *weights[tensor].values(); };
  for (const bool input : {false, true}) {
    for (const bool recurrent : {false, true}) {
      const auto model = Made(R"({"embedding": {"scale": 1, "table": "emb"}, "recurrent": {
          "cell": "lstm", "gates": "ifgo", "forget_bias": 2, "layers": [{)" +
                                  std::string(input ? R"("input_bias": "lstm.bias_ih_l0", )" : "") +
                                  (recurrent ? R"("recurrent_bias": "lstm.bias_hh_l0", )" : "") +
                                  R"("input_weight": "lstm.weight_ih_l0",
              "recurrent_weight": "lstm.weight_hh_l0"}]},
          "softmax": {"table": "out"}, "unused": ["*"]})",
                              weights);
      ASSERT_TRUE(model.ok()) << model.status().message();
      std::vector<float> sums(12);
      for (const EncodedTensor& tensor : model->draft.tensors) {
        if (!tensor.name.ends_with("_bias")) continue;
        const std::vector<float>& values = std::get<DenseF32>(tensor.values).values;
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
      }
      for (size_t i = 0; i < sums.size(); ++i) {
        const float stored = (input ? bias(3)[i] : 0) + (recurrent ? bias(4)[i] : 0);
        EXPECT_NEAR(sums[i], stored + (i / 3 == 1 ? 2 : 0), 1e-6) << i;
      }
    }
  }
}

TEST(ModelFromRecipe, NamesTensorsByTheirPlaceAndStoresEachOnce) {
  const std::string json = R"({"embedding": {"table": "emb", "scale": 3}, )" + kLstm + R"(,
    "softmax": {"head": {"table": {"tensor": "out", "rows": [0, 4]},
                         "bias": {"tensor": "bias", "columns": [0, 4]}},
                "clusters": {"weight": "clusters", "order": "reversed"},
                "tails": [{"table": {"tensor": "out", "rows": [4, 6]}},
                          {"table": {"tensor": "out", "rows": [6, 9]}}]}})";
  const auto model = Made(json, Small());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(Filed(json, Small()).ok());
  std::vector<std::string> names;
  for (const EncodedTensor& tensor : model->draft.tensors) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "embedding.table", "recurrent.0.input_weight", "recurrent.0.input_bias",
                       "recurrent.0.recurrent_weight", "recurrent.0.recurrent_bias",
                       "softmax.head.table", "softmax.head.bias", "softmax.clusters.weight",
                       "softmax.tails.0.table", "softmax.tails.1.table"}));
  EXPECT_EQ(NamesOf(*model, model->quantisable), names);
  std::erase_if(names, [](const std::string& name) { return name.ends_with("bias"); });
  EXPECT_EQ(NamesOf(*model, model->prunable), names);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(model->draft.description);
  EXPECT_EQ(softmax->head_size, 4u);
  EXPECT_EQ(softmax->tails[0].cluster_row, 1u);
  EXPECT_EQ(softmax->tails[1].cluster_row, 0u);
  EXPECT_EQ(softmax->tails[1].first, 6u);
  EXPECT_EQ(FindBlock<AdaptiveEmbedding>(model->draft.description)->scale, 3);
}

TEST(ModelFromRecipe, ATensorThatTwoPlacesNameIsStoredOnce) {
  CheckpointTensors weights = Small();
  weights[0] = RandomTensor("emb", {9, 3});
  weights[1] = RandomTensor("lstm.weight_ih_l0", {12, 3});
  const auto model = Made(R"({"embedding": {"scale": 1, "table": "emb"}, )" + kLstm + R"(,
    "softmax": {"table": "emb"}, "unused": ["out", "bias", "clusters"]})",
                          weights);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->draft.tensors.size(), 5u);
  EXPECT_EQ(FindBlock<AdaptiveSoftmax>(model->draft.description)->head_table,
            FindBlock<AdaptiveEmbedding>(model->draft.description)->bins[0].table);
}

TEST(ModelFromRecipe, CodedTablesHaveTheirCodebookAsATensor) {
  CheckpointTensors weights = Small();
  weights.push_back(RandomTensor("book", {8, 2}));
  const auto model =
      Made(R"({"embedding": {"scale": 1, "table": {"hashed": {"codebook": "book", "words": 9,
      "positions": 2, "combine": "concatenate",
      "pools": "one", "seed": 3}}}, )" +
               kLstm + R"(,
    "softmax": {"table": "out"}, "unused": ["emb", "bias", "clusters"]})",
           weights);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->draft.tensors[0].name, "embedding.table.codebook");
  EXPECT_EQ(model->draft.tensors[1].name, "embedding.table");
  const auto& coded = std::get<Coded>(model->draft.tensors[1].values);
  EXPECT_EQ(std::get<HashSeed>(coded.codes).value, 3u);
  EXPECT_EQ(std::count(model->quantisable.begin(), model->quantisable.end(), 1u), 0);
}

// The words take [E 0], the clusters [0 I] of [P; C] h.
TEST(ModelFromRecipe, ClustersMayReadWhatTheHeadsProjectionDoesNot) {
  CheckpointTensors weights = Small();
  weights.push_back(FloatTensor("narrow", {1, 3}, {1, 2, 3}));
  weights.push_back(FloatTensor("head", {2, 1}, {5, 6}));
  weights[7] = FloatTensor("clusters", {1, 3}, {7, 8, 9});
  const std::string json =
      R"({"embedding": {"scale": 1, "table": "emb"}, )" + kLstm + R"(, "unused": ["bias"],
    "softmax": {"head": {"table": "head", "projection": "narrow"},
                "clusters": {"weight": "clusters", "order": "forward", "reads": "hidden"},
                "tails": [{"table": {"tensor": "out", "rows": [2, 9]}}]}})";
  const auto model = Made(json, weights);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto* softmax = FindBlock<AdaptiveSoftmax>(model->draft.description);
  const auto values = [&](std::optional<TensorId> id) {
    return DecodedValues(model->draft.tensors[*id]);
  };
  EXPECT_EQ(values(softmax->head_table), (std::vector<float>{5, 0, 6, 0}));
  EXPECT_EQ(values(softmax->cluster_weight), (std::vector<float>{0, 1}));
  EXPECT_EQ(values(softmax->head_projection), (std::vector<float>{1, 2, 3, 7, 8, 9}));
  EXPECT_TRUE(Filed(json, weights).ok()) << Filed(json, weights).message();

  weights.back() = FloatTensor("head", {2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(Filed(json, weights).message(),
            "recipe: softmax.head: expected a projection [2, 3] and clusters of 3 columns, found "
            "[1, 3] and [1, 3]");
}

TEST(ModelFromRecipe, EveryRefusalIsOneLineAndSaysWhich) {
  const std::string embedding = R"({"embedding": {"scale": 1, "table": "emb"}, )";
  const std::string softmax = R"(, "softmax": {"table": "out"})";
  const std::string rest = R"(, "unused": ["bias", "clusters"]})";
  const std::string hashed =
      R"({"hashed": {"codebook": "emb", "words": 2147483647, "positions": 1, "seed": 1,
          "combine": "concatenate", "pools": "one"}})";
  const std::pair<std::string, std::string> cases[] = {
      {embedding + kLstm + softmax + "}", "bias"},
      {embedding + kLstm + R"(, "softmax": {"table": "tuo"})" + rest, "tuo"},
      {R"({"embedding": {"scale": 1, "table": "bias"}, )" + kLstm + softmax +
           R"(, "unused": ["emb", "clusters"]})",
       "recipe: embedding.table: expected a matrix, found [9] of 'bias'"},
      {R"({"embedding": {"scale": 1, "bins": []}, )" + kLstm + softmax + R"(, "unused": ["*"]})",
       "recipe: embedding: expected 1 to 4096 bins, found 0"},
      {embedding + R"("recurrent": {"cell": "rnn_tanh", "layers": []})" + softmax +
           R"(, "unused": ["*"]})",
       "recipe: recurrent: expected at least 1 layer, found 0"},
      {embedding + R"("recurrent": {"cell": "lstm", "gates": "ifgo", "forget_bias": 0,
                                     "layers": [{"input_weight": "out"}]})" +
           softmax + R"(, "unused": ["*"]})",
       "recipe: recurrent.0.input_weight: expected 4 rows for each unit, found [9, 3]"},
      {embedding + R"("recurrent": {"cell": "gru", "torch": "lstm", "layers": 1})" + softmax + rest,
       "recurrent"},
      {R"({"embedding": {"scale": 1, "table": {"tensor": "emb", "rows": [0, 8]}}, )" + kLstm +
           softmax + rest,
       "softmax"},
      {R"({"embedding": {"scale": 1, "table": {"tensor": "emb", "columns": [0, 3]}}, )" + kLstm +
           softmax + rest,
       "recurrent"},
      {embedding + kLstm +
           R"(, "softmax": {"table": "out", "bias": {"tensor": "bias", "columns": [1, 9]}},
                              "unused": ["clusters"]})",
       "softmax"},
      {embedding + kLstm + R"(, "softmax": {"head": {"table": {"tensor": "out", "rows": [0, 5]}},
          "clusters": {"weight": "clusters", "order": "forward"},
          "tails": [{"table": {"tensor": "out", "rows": [4, 9]}}]},
          "unused": ["bias"]})",
       "softmax"},
      {embedding + kLstm +
           R"(, "softmax": {"head": {"table": "out"},
          "clusters": {"weight": "clusters", "order": "forward"},
          "tails": []}, "unused": ["bias"]})",
       "softmax"},
      {R"({"embedding": {"scale": 1, "bins": [{"table": )" + hashed + R"(}, {"table": )" + hashed +
           "}]}, " + kLstm + softmax + rest,
       "recipe: embedding: expected at most 2147483647 words, found 4294967294"},
      {embedding + kLstm +
           R"(, "softmax": {"head": {"table": "out"},
          "clusters": {"weight": "clusters", "order": "forward"},
          "tails": [{"table": )" +
           hashed + R"(}, {"table": )" + hashed + R"(}]}, "unused": ["bias"]})",
       "recipe: softmax: expected at most 2147483647 words"},
      {embedding + kLstm + softmax +
           R"(, "cache": {"capacity": 99999999, "theta": 1, "lambda": 0.5,
                         "start": "first_pair"})" +
           rest,
       "recipe: cache: expected a capacity up to 1048576, found 99999999"},
      {embedding + kLstm + softmax +
           R"(, "cache": {"capacity": 9, "theta": -1, "lambda": 0.5, "start": "first_pair"})" +
           rest,
       "theta"},
      {embedding + kLstm + softmax +
           R"(, "cache": {"capacity": 9, "theta": 1, "lambda": 1, "start": "first_pair"})" + rest,
       "lambda"},
      {embedding + kLstm + softmax +
           R"(, "cache": {"capacity": 0, "theta": 1, "lambda": 0.5,
                         "start": "first_pair"})" +
           rest,
       "capacity"},
  };
  for (const auto& [json, refusal] : cases) {
    const Status status = Filed(json, Small());
    ASSERT_FALSE(status.ok()) << json;
    EXPECT_NE(status.message().find(refusal), std::string::npos)
        << status.message() << "\ninstead of " << refusal;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace kinglet::recipe_model_test
