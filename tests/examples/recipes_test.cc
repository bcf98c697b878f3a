// The recipes of examples/recipes: each converts what it was written for, and the numbers are those
// of PyTorch in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/recipe/recipe.h"
#include "converters/texts/token_file.h"
#include "tests/tools/run_command.h"

namespace kinglet::recipes_test {
namespace {

namespace fs = std::filesystem;

std::string RecipePath(const std::string& name) {
  return std::string(KINGLET_EXAMPLES) + "/recipes/" + name + ".json";
}

TEST(Recipes, AllAreShortAndSound) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(KINGLET_EXAMPLES "/recipes")) {
    names.push_back(entry.path().stem().string());
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << entry.path();
    const auto node = RecipeNode::Read(entry.path().string());
    ASSERT_TRUE(node.ok()) << node.status().message();
    const auto recipe = ParseRecipe(*node);
    EXPECT_TRUE(recipe.ok()) << recipe.status().message();
  }
  EXPECT_GE(names.size(), 7u);
}

// Tiny checkpoints of the names and forms that the recipes map: make_reference_forms.py.
class ReferenceRecipe : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceRecipe, EqualsPyTorch) {
  const CommandFolder folder;
  const std::string name = std::string("reference-") + GetParam();
  ConvertOptions options;
  options.checkpoint = KINGLET_TEST_DATA "/recipes/" + name + "/model.pt";
  options.recipe = RecipePath(name);
  options.output = folder.Path("model.kgl");
  options.golden = KINGLET_TEST_DATA "/recipes/" + name + "/golden_f64.tsv";
  options.ids = KINGLET_TEST_DATA "/recipes/" + name + "/tokens.txt";
  options.tolerance = 1e-6;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->golden_positions, 47u);
  EXPECT_EQ(summary->family, "recipe");
}
INSTANTIATE_TEST_SUITE_P(All, ReferenceRecipe, testing::Values("define", "dpq", "slim"),
                         [](const auto& instance) { return std::string(instance.param); });

// Recipes whose layers are listed by tensor: the right order of gates and the right forget bias
// give the golden values, any other order gives others, and none is refused.
class ListedLayers : public testing::Test {
 protected:
  Outcome Converted(const std::string& folder, const std::string& checkpoint,
                    const std::string& recipe) const {
    folder_.Write("r.json", recipe);
    return folder_.Run("convert " + folder + checkpoint + " -o m.kgl --recipe r.json --golden " +
                       folder + "golden_f64.tsv --ids " + folder + "tokens.txt --tolerance 1e-6");
  }
  const CommandFolder folder_;
};

TEST_F(ListedLayers, OfPyTorchAreInPyTorchsOrder) {
  const auto with = [&](const std::string& gates) {
    return Converted(KINGLET_TEST_DATA "/kinglet-torch/full/", "model.pt",
                     R"({"embedding": {"scale": 1, "table": "input.table"},
  "recurrent": {"cell": "lstm", )" +
                         gates + R"("layers": [
    {"input_weight": "lstm.0.weight_ih_l0", "input_bias": "lstm.0.bias_ih_l0",
     "recurrent_weight": {"tensor": "lstm.0.weight_hh_l0", "transpose": false},
     "recurrent_bias": "lstm.0.bias_hh_l0"},
    {"input_weight": "lstm.1.weight_ih_l0", "input_bias": "lstm.1.bias_ih_l0",
     "recurrent_weight": "lstm.1.weight_hh_l0", "recurrent_bias": "lstm.1.bias_hh_l0"}]},
  "softmax": {"table": "output.table", "bias": "output.bias"}})");
  };
  const Outcome right = with(R"("gates": "ifgo", "forget_bias": 0, )");
  EXPECT_EQ(right.exit_status, 0) << right.error;
  EXPECT_NE(with(R"("gates": "ijfo", "forget_bias": 0, )").error.find("golden"), std::string::npos);
  EXPECT_NE(with(R"("gates": "ifgo", "forget_bias": 1, )").error.find("golden"), std::string::npos);
  const Outcome none = with("");
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_NE(
      none.error.find(
          "recipe: r.json, line 2, column 16, /recurrent: expected \"gates\", the order of the "
          "gates' blocks of rows: \"ifgo\" (PyTorch, Keras) or \"ijfo\" (TensorFlow's LSTM "
          "cells), found none"),
      std::string::npos)
      << none.error;
}

TEST_F(ListedLayers, OfTensorFlowAreInTensorFlowsOrder) {
  // Two layers of 10 units, a forget bias of 1, DPQ-SX that averages whole vectors.
  const auto with = [&](const std::string& gates) {
    return Converted(KINGLET_TEST_DATA "/recurrent-variants/zaremba-dpq-sx-additive-forget/",
                     "model.npz",
                     R"({"embedding": {"scale": 1, "table": {"dpq": {
  "method": "sx", "positions": 5, "combine": "mean", "batch_norm": "choices", "epsilon": 0.001,
  "query": "Model/kdq_emb/query_wemb", "keys": "Model/kdq_emb/centroids_k",
  "values": "Model/kdq_emb/centroids_v",
  "mean": "Model/kdq_emb/batch_normalization/moving_mean",
  "variance": "Model/kdq_emb/batch_normalization/moving_variance"}}},
"recurrent": {"cell": "lstm", )" +
                         gates +
                         R"("layers": [
  {"input_weight": {"tensor": "Model/RNN/layer_0/rnn/lstm_cell/kernel", "rows": [0, 10],
                    "transpose": true},
   "recurrent_weight": {"tensor": "Model/RNN/layer_0/rnn/lstm_cell/kernel", "rows": [10, 20],
                        "transpose": true},
   "input_bias": "Model/RNN/layer_0/rnn/lstm_cell/bias"}]},
"softmax": {"table": {"tensor": "Model/softmax_w", "transpose": true},
            "bias": "Model/softmax_b"}})");
  };
  const Outcome right = with(R"("gates": "ijfo", "forget_bias": 1, )");
  EXPECT_EQ(right.exit_status, 0) << right.error;
  EXPECT_NE(with(R"("gates": "ifgo", "forget_bias": 1, )").error.find("golden"), std::string::npos);
  EXPECT_NE(with(R"("gates": "ijfo", "forget_bias": 0, )").error.find("golden"), std::string::npos);
  EXPECT_NE(with("").error.find("\"ifgo\" (PyTorch, Keras) or \"ijfo\""), std::string::npos);
  EXPECT_NE(with(R"("gates": "ijfo", )").error.find("expected \"forget_bias\""), std::string::npos);
}

// The DPQ authors' language model by a recipe, from an .npz and from TensorFlow's own checkpoint.
TEST(DpqLanguageModel, EqualsTheOriginalProgramByARecipe) {
  const char* more = std::getenv("KINGLET_CHECKPOINTS");
  const std::string data = std::string(more == nullptr ? "" : more) + "/dpq-lm-sx/";
  if (more == nullptr || !fs::exists(data)) GTEST_SKIP() << "KINGLET_CHECKPOINTS has none";
  const CommandFolder folder;
  for (const char* name : {"model.npz", "model-3860", "model-3860.index"}) {
    const Outcome converted =
        folder.Run("convert " + data + name + " -o m.kgl --recipe " + RecipePath("dpq-lm") +
                   " --vocab " + data + "vocab.txt --golden " + data + "golden_f64.tsv --ids " +
                   data + "tokens.txt --tolerance 1e-6");
    EXPECT_EQ(converted.exit_status, 0) << converted.error;
  }
}

// The DeFINE unit stays in the file; the numbers are the same.
TEST(ReferenceDefine, EqualsPyTorchWithItsUnitKept) {
  const CommandFolder folder;
  const std::string data = KINGLET_TEST_DATA "/recipes/reference-define/";
  for (const std::string rows : {"1", "2", "1000000"}) {
    const Outcome converted =
        folder.Run("convert " + data + "model.pt -o m.kgl --recipe " +
                   RecipePath("reference-define") + " --keep-define " + rows + " --golden " + data +
                   "golden_f64.tsv --ids " + data + "tokens.txt --tolerance 1e-6");
    ASSERT_EQ(converted.exit_status, 0) << converted.error;
    const auto inspected = folder.Run("inspect m.kgl --json").Json().at(0);
    const auto& unit = inspected["blocks"][0]["units"][0];
    EXPECT_EQ(std::to_string(unit["cache_rows"].get<uint64_t>()), rows);
    EXPECT_EQ(unit["layers"].size(), 4u);
    for (const std::string rules : {"executed", "micronet-2019"}) {
      const Outcome count =
          folder.Run("count m.kgl --json --rules " + rules + " --ids " + data + "tokens.txt");
      ASSERT_EQ(count.exit_status, 0) << count.error;
      EXPECT_GT(count.Json().at(0)["ops"]["total"].get<double>(), 1000);
    }
  }
}

// A cached DeFINE unit, DPQ codes, pruned LSTM layers, a slim softmax and the neural cache, all of
// 9 bits. The golden values are of the PyTorch modules with the same pruned and quantised weights,
// to which the package of examples/torch applied the rules itself.
class Everything : public testing::Test {
 protected:
  const std::string data_ = KINGLET_TEST_DATA "/kinglet-torch/everything";
  const std::string convert_ =
      "convert " + data_ + "/model.pt -o m.kgl --recipe " + RecipePath("everything");
  const std::string ids_ = " --ids " + data_ + "/tokens.txt";
  const CommandFolder folder_;

  void ExpectCounted() const {
    for (const std::string rules : {"executed", "micronet-2019"}) {
      const Outcome count = folder_.Run("count m.kgl --json --rules " + rules + ids_);
      ASSERT_EQ(count.exit_status, 0) << count.error;
      const auto report = count.Json().at(0);
      EXPECT_EQ(report["rules"], rules);
      EXPECT_GT(report["ops"]["total"].get<double>(), 9000);
    }
  }
};

TEST_F(Everything, EqualsPyTorchWithTheSameWeights) {
  const Outcome converted =
      folder_.Run(convert_ + ids_ + " --golden " + data_ + "/golden_9bit_f64.tsv --tolerance 1e-6");
  ASSERT_EQ(converted.exit_status, 0) << converted.error;
  ExpectCounted();
  // The float network is another one.
  const Outcome refused =
      folder_.Run(convert_ + ids_ + " --golden " + data_ + "/golden_f64.tsv --tolerance 1e-3");
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_NE(refused.error.find("golden"), std::string::npos) << refused.error;
}

TEST_F(Everything, CalibratedIsTheSameBitsOnBothBackends) {
  std::string vocabulary, text;
  const std::vector<uint32_t> ids = *ReadIds(data_ + "/tokens.txt");
  for (int i = 0; i < 200; ++i) vocabulary += i == 0 ? "<eos>\n" : "w" + std::to_string(i) + "\n";
  for (const uint32_t id : ids) text += id == 0 ? "\n" : "w" + std::to_string(id) + " ";
  folder_.Write("vocab.txt", vocabulary);
  folder_.Write("text", text);
  const Outcome converted = folder_.Run(convert_ + " --vocab vocab.txt --bits 9 --calibrate text");
  ASSERT_EQ(converted.exit_status, 0) << converted.error;
  const auto bits = [&](const std::string& backend) {
    const Outcome scored = folder_.Run("score m.kgl --hex --json --backend " + backend + ids_);
    EXPECT_EQ(scored.exit_status, 0) << scored.error;
    std::vector<std::string> all;
    for (const auto& line : scored.Json()) {
      if (line.contains("hex")) all.push_back(line["hex"]);
    }
    return all;
  };
  const std::vector<std::string> reference = bits("ref");
  EXPECT_EQ(reference.size(), ids.size() - 1);
  EXPECT_EQ(reference, bits("cpu"));
  ExpectCounted();
  // Calibration changes the model a little.
  const std::vector<double> scores = LibraryScores(folder_.Path("m.kgl"), "cpu", ids);
  std::ifstream golden(data_ + "/golden_f64.tsv");
  uint64_t position = 0, id = 0;
  double value = 0, exact = 0, found = 0;
  while (golden >> position >> id >> value) {
    exact += value;
    found += scores[position - 1];
  }
  EXPECT_NEAR(found / 47, exact / 47, 0.2);
}

// The bundled model with tables of other forms loses little, by the original code's own values.
TEST(WikiText2Recipes, StayNearTheModelTheyChange) {
  const std::string data = KINGLET_DEMO_DATA;
  std::vector<uint32_t> ids = *ReadIds(data + "/tokens.txt");
  ids.resize(300);
  std::ifstream file(data + "/golden_f64.tsv");
  uint64_t position = 0, id = 0;
  double value = 0, exact = 0;
  while (file >> position >> id >> value && position < ids.size()) exact += value;
  const struct {
    const char* name;
    double loss;  // nat a token, more than the original
    uint64_t bytes;
  } cases[] = {
      {"hashed", 0.7, 2'150'000}, {"low-rank", 0.35, 2'400'000}, {"coded-tails", 0.25, 1'900'000}};
  for (const auto& [name, loss, bytes] : cases) {
    const CommandFolder folder;
    ConvertOptions options;
    options.checkpoint = data;
    options.vocabulary = data + "/vocab.txt";
    options.recipe = RecipePath(std::string("wikitext2-") + name);
    options.trust_recipe_paths = true;  // one calibrates on the demo model's text
    options.output = folder.Path("m.kgl");
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_LT(summary->file_bytes, bytes) << name;
    double found = 0;
    for (const double score : LibraryScores(options.output, "cpu", ids)) found += score;
    EXPECT_LT((exact - found) / static_cast<double>(ids.size() - 1), loss) << name;
    EXPECT_GT((exact - found) / static_cast<double>(ids.size() - 1), -loss) << name;
  }
}

}  // namespace
}  // namespace kinglet::recipes_test
