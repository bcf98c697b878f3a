#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converters/passes/define/define_table.h"
#include "format/block_fields.h"
#include "runtime/embedder.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/define_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::embed_test {
namespace {

class EmbedTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("bag.kgl", TinyClassifier({.positions = 3, .hidden = 5, .max_pool = true}));
    folder_.WriteModel("words.kgl", TinyClassifier({.classes = 0}));
    folder_.WriteModel("language.kgl", TinyMicronet());
    folder_.Write("ids.txt", "22 0\n7 22\n");
    folder_.Write("lists.txt", "3 9 3\n5\n0 1\n");
  }
  std::unique_ptr<Embedder> Library(const std::string& name, const std::string& backend) const {
    return std::move(*Embedder::Create(*Model::Open(folder_.Path(name), {.backend = backend})));
  }

  CommandFolder folder_;
};

TEST_F(EmbedTest, AnyModelHasVectors) {
  for (const std::string name : {"bag.kgl", "words.kgl", "language.kgl"}) {
    for (const std::string backend : {"cpu", "ref64"}) {
      const Outcome outcome =
          folder_.Run("embed " + name + " --ids ids.txt --json --backend " + backend);
      ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
      const auto lines = outcome.Json();
      ASSERT_EQ(lines.size(), 4U);
      const auto embedder = Library(name, backend);
      std::vector<double> vector(embedder->width());
      const uint32_t ids[] = {22, 0, 7, 22};
      for (size_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(embedder->Vector(ids[i], std::span(vector)).ok());
        EXPECT_EQ(lines[i]["id"], ids[i]);
        const auto printed = lines[i]["vector"].get<std::vector<double>>();
        ASSERT_EQ(printed.size(), vector.size());
        for (size_t j = 0; j < vector.size(); ++j) {  // 9 digits tell floats apart, 17 doubles
          if (backend == "ref64") {
            EXPECT_EQ(printed[j], vector[j]);
          } else {
            EXPECT_EQ(static_cast<float>(printed[j]), static_cast<float>(vector[j]));
          }
        }
        EXPECT_EQ(lines[i].size(), 2U);
      }
    }
  }
  EXPECT_EQ(folder_.Run("embed words.kgl --ids ids.txt").Lines().size(), 4U);
}

// The layers of a unit in one of two bins, against the converter's evaluation in double precision.
TEST_F(EmbedTest, LayersOfAUnit) {
  ModelDraft draft = TinyDefine({.cache_rows = 3, .decoder = false});
  auto& embedding = std::get<AdaptiveEmbedding>(draft.description.blocks[0]);
  KeptDefineUnit& kept = embedding.units[0];
  const EmbeddingBin map = embedding.bins[0];  // words 0 to 9
  DefineUnit unit = kept.unit;
  const auto values = [&](const std::optional<TensorId>& id) {
    return id ? DecodedValues(draft.tensors[*id]) : std::vector<float>();
  };
  std::vector<DefineWeights> weights;
  for (const DefineTensors& tensors : kept.tensors) {
    weights.push_back({values(tensors.weight), values(tensors.bias), values(tensors.norm_gain),
                       values(tensors.norm_offset)});
  }
  const DefineMap rows = {{10, unit.map_width, map.scale, values(map.table), {}}};
  kept.bin_count = 1;
  embedding.bins[1].projection.reset();
  draft.tensors[embedding.bins[1].table] = {
      "plain", {13, embedding.width}, DenseF32{std::vector<float>(13 * embedding.width)}, false};
  draft.tensors.erase(draft.tensors.begin() + 2);
  ForEachTensor(embedding, [](TensorId& id) { id -= id > 2 ? 1 : 0; });
  folder_.WriteModel("units.kgl", draft);
  folder_.Write("some.txt", "9 0\n3 9\n");
  const size_t layers = unit.layers.size();
  for (size_t layer = layers; layer <= layers; --layer) {
    unit.layers.resize(layer);
    weights.resize(layer);
    const std::vector<float> expected = *DefineTable(rows, unit, weights, 1);
    const uint64_t width = OutputWidth(unit), groups = layer == 0 ? 1 : unit.layers.back().groups;
    const bool shuffled = layer > 0 && unit.layers.back().shuffle != DefineLayer::Shuffle::kNone;
    const Outcome outcome = folder_.Run(
        "embed units.kgl --ids some.txt --json --backend ref64 --layer " + std::to_string(layer));
    ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
    const auto lines = outcome.Json();
    ASSERT_EQ(lines.size(), 4U);
    const uint32_t ids[] = {9, 0, 3, 9};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(lines[i]["layer"], layer);
      const auto vector = lines[i]["vector"].get<std::vector<double>>();
      const auto of_groups = lines[i]["groups"].get<std::vector<std::vector<double>>>();
      ASSERT_EQ(vector.size(), width);
      ASSERT_EQ(of_groups.size(), groups);
      for (size_t j = 0; j < width; ++j) {
        EXPECT_NEAR(vector[j], expected[ids[i] * width + j], 1e-6) << layer;
        const size_t group = shuffled ? j % groups : j / (width / groups);
        EXPECT_EQ(of_groups[group][shuffled ? j / groups : j % (width / groups)], vector[j]);
      }
    }
  }
  EXPECT_EQ(
      folder_.Run("embed units.kgl --ids some.txt --layer 9").error,
      "kinglet: units.kgl: --layer: expected 0 (Map) to " + std::to_string(layers) + ", found 9\n");
  EXPECT_EQ(folder_.Run("embed units.kgl --ids ids.txt --layer 1").error,
            "kinglet: ids.txt: --layer: expected words of a DeFINE unit's bins, found id 22\n");
  EXPECT_EQ(folder_.Run("embed words.kgl --ids ids.txt --layer 1").error,
            "kinglet: words.kgl: --layer: expected a model that keeps a DeFINE unit (convert "
            "--keep-define ROWS), found one without\n");
  EXPECT_EQ(folder_.Run("embed words.kgl --layer 1").error,
            "kinglet: usage: --layer: expected --ids FILE with it, found none. See `kinglet embed "
            "--help`.\n");
}

TEST_F(EmbedTest, ThreadsChangeNothing) {
  folder_.WriteModel("masked.kgl", TinyMasked({.scores = 3}));
  folder_.Write("texts.txt", "2 9 4 13 3 6 3\n2 5 3\n");
  std::string many;
  for (int i = 0; i < 50; ++i)
    many += std::to_string(1 + i % 22) + " " + std::to_string(i % 7) + "\n";
  folder_.Write("many.txt", many);
  for (const std::string command :
       {"embed bag.kgl --classify --ids many.txt --json", "embed words.kgl --ids many.txt --json",
        "embed masked.kgl --ids texts.txt --json"}) {
    const Outcome one = folder_.Run(command), three = folder_.Run(command + " --threads 3");
    EXPECT_EQ(one.exit_status, 0) << one.error;
    EXPECT_EQ(three.out, one.out) << command << three.error;
  }
  folder_.Write("wrong.txt", many + "99\n" + many);
  const Outcome one = folder_.Run("embed bag.kgl --classify --ids wrong.txt");
  const Outcome three = folder_.Run("embed bag.kgl --classify --ids wrong.txt --threads 3");
  EXPECT_EQ(one.exit_status, 1);
  EXPECT_NE(one.error.find("wrong.txt, line 51: "), std::string::npos) << one.error;
  EXPECT_EQ(three.out, one.out);
  EXPECT_EQ(three.error, one.error);
}

TEST_F(EmbedTest, ClassifiersGiveScores) {
  const Outcome outcome =
      folder_.Run("embed bag.kgl --ids lists.txt --classify --json --backend ref64");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  const auto lines = outcome.Json();
  ASSERT_EQ(lines.size(), 3U);
  const auto embedder = Library("bag.kgl", "ref64");
  const std::vector<std::vector<uint32_t>> lists = {{3, 9, 3}, {5}, {0, 1}};
  for (size_t i = 0; i < 3; ++i) {
    std::vector<double> logits(4), log_probabilities(4);
    ASSERT_TRUE(embedder->Classify(lists[i], logits, log_probabilities).ok());
    EXPECT_EQ(lines[i]["line"], i + 1);
    EXPECT_EQ(lines[i]["scores"].get<std::vector<double>>(), logits);
    EXPECT_EQ(lines[i]["logprobs"].get<std::vector<double>>(), log_probabilities);
    const size_t best = lines[i]["class"];
    for (const double logit : logits) EXPECT_LE(logit, logits.at(best));
  }
  EXPECT_EQ(folder_.Run("embed bag.kgl --ids lists.txt --classify").Lines().size(), 3U);
}

TEST_F(EmbedTest, BagsOfWordsFromTextAndTheirAccuracy) {
  folder_.Write("texts.txt", "w3 w9 w3\nw5\nw0 w1\n");
  const std::string tail = " --classify --json";
  const auto lines = folder_.Run("embed bag.kgl --text texts.txt" + tail).Json();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines, folder_.Run("embed bag.kgl --ids lists.txt" + tail).Json());
  EXPECT_EQ(lines, folder_.Run("embed bag.kgl --text -" + tail, "w3 w9 w3\nw5\nw0 w1\n").Json());
  const uint64_t other = (lines[1]["class"].get<uint64_t>() + 1) % 4;
  folder_.Write("labels.txt", lines[0]["class"].dump() + "\n" + std::to_string(other) + "\n" +
                                  lines[2]["class"].dump() + "\n");
  const std::string command = "embed bag.kgl --text texts.txt --labels labels.txt --classify";
  const auto with_labels = folder_.Run(command + " --json").Json();
  ASSERT_EQ(with_labels.size(), 4U);
  EXPECT_EQ(with_labels[3].dump(), R"({"texts":3,"right":2,"accuracy":0.666666667})");
  EXPECT_EQ(folder_.Run(command).error, "kinglet: accuracy 0.66667, 2 of 3 texts\n");

  folder_.WriteModel("masked.kgl", TinyMasked({.scores = 3}));
  folder_.Write("masked.txt", "2 9 4 13 3 6 3\n2 5 3\n");
  const auto scores = folder_.Run("embed masked.kgl --ids masked.txt" + tail).Json();
  std::string best;
  for (const auto& line : scores) {
    const auto values = line["scores"].get<std::vector<double>>();
    best += std::to_string(std::max_element(values.begin(), values.end()) - values.begin()) + "\n";
  }
  folder_.Write("best.txt", best);
  EXPECT_EQ(folder_.Run("embed masked.kgl --ids masked.txt --labels best.txt" + tail)
                .Json()
                .back()["accuracy"],
            1.0);

  folder_.Write("four.txt", "0\n4\n0\n");
  folder_.Write("two.txt", "0\n0\n");
  for (const auto& [arguments, part] :
       {std::pair("--labels four.txt --classify", "four.txt: line 2: expected a class, 0 to 3"),
        {"--labels two.txt --classify", "two.txt: expected a label for each text, found 2 labels"},
        {"--labels none.txt --classify", "none.txt"},
        {"--labels two.txt", "--classify"}}) {
    const Outcome outcome = folder_.Run("embed bag.kgl --text texts.txt " + std::string(arguments));
    EXPECT_NE(outcome.exit_status, 0) << arguments;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  }
}

TEST_F(EmbedTest, RefusesInOneLine) {
  folder_.Write("far.txt", "1 23\n");
  folder_.Write("blank.txt", "1\n\n2\n");
  folder_.Write("bad.txt", "1\n2 x\n");
  for (const std::string arguments :
       {"words.kgl --ids lists.txt --classify", "language.kgl --ids lists.txt --classify",
        "bag.kgl --ids far.txt --classify", "bag.kgl --ids far.txt", "bag.kgl --ids none.txt"}) {
    const Outcome outcome = folder_.Run("embed " + arguments);
    EXPECT_EQ(outcome.exit_status, 1) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
  }
  const Outcome blank = folder_.Run("embed bag.kgl --ids blank.txt --classify");
  EXPECT_EQ(blank.exit_status, 1);
  EXPECT_NE(blank.error.find("blank.txt, line 2"), std::string::npos) << blank.error;
  const Outcome bad = folder_.Run("embed bag.kgl --ids bad.txt --classify");
  EXPECT_NE(bad.error.find("bad.txt, line 2"), std::string::npos) << bad.error;
  EXPECT_EQ(folder_.Run("embed bag.kgl").error,
            "kinglet: bag.kgl: embed: expected --ids FILE, as it is no masked model, found none\n");
  EXPECT_EQ(folder_.Run("embed bag.kgl --ids ids.txt --segments ids.txt").error,
            "kinglet: bag.kgl: --segments: expected a masked model, found another\n");
}

TEST_F(EmbedTest, OtherCommandsKnowSuchModels) {
  for (const std::string name : {"bag.kgl", "words.kgl"}) {
    EXPECT_EQ(folder_.Run("verify " + name).exit_status, 0);
    const auto report = folder_.Run("inspect " + name + " --json").Json().at(0);
    EXPECT_EQ(report["file_size"], report["ledger_total"]);
    EXPECT_EQ(report["blocks"].size(), name == "bag.kgl" ? 2U : 1U);
    EXPECT_EQ(folder_.Run("inspect " + name).exit_status, 0);
    for (const std::string command : {"score", "predict", "bench"}) {
      const Outcome refused = folder_.Run(command + " " + name + " --ids ids.txt");
      EXPECT_EQ(refused.exit_status, 1) << command;
      EXPECT_NE(refused.error.find("expected a language model"), std::string::npos)
          << refused.error;
    }
  }
  const auto blocks = folder_.Run("inspect bag.kgl --json").Json().at(0)["blocks"];
  EXPECT_EQ(blocks[1]["block"], "bag_classifier");
  EXPECT_EQ(blocks[1]["classes"], 4);
  EXPECT_EQ(blocks[1]["hidden"]["weight"], "hidden.weight");
}

// Operations worked out by hand for width 6: scaling a vector; adding and comparing each entry of a
// bag; the mean's division; for 12 features a product, a shift and relu, then 5 units; products
// with biases; for 4 classes a maximum, exponentials, their sum, a logarithm and two differences
// each.
TEST_F(EmbedTest, CountsOperationsOfEachWord) {
  const auto words = folder_.Run("count words.kgl --json").Json().at(0);
  EXPECT_EQ(words["ops"]["muls"], 6);
  EXPECT_EQ(words["ops"]["adds"], 0);
  const auto bag = folder_.Run("count bag.kgl --json").Json().at(0);
  EXPECT_EQ(bag["ops"]["muls"], 6 + 12 + 60 + 5 + 20);
  EXPECT_EQ(bag["ops"]["adds"], 6 + 12 + (55 + 5) + 5 + (16 + 4) + 3 + 8);
  EXPECT_EQ(bag["ops"]["others"], 6 + 6 + 12 + 5 + 7 + 1);
  EXPECT_EQ(folder_.Run("count bag.kgl --rules micronet-2019 --json").exit_status, 0);
}

}  // namespace
}  // namespace kinglet::embed_test
