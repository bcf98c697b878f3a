// kinglet diff on tiny models.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::diff_test {
namespace {

class DiffTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("a.kgl", TinyMicronet());
    ModelDraft other = TinyMicronet();
    for (EncodedTensor& tensor : other.tensors) {
      if (tensor.name != "layers.0.qkv.weight") continue;
      for (float& value : std::get<DenseF32>(tensor.values).values) value *= 1.5F;
    }
    folder_.WriteModel("b.kgl", other);
    std::string ids;
    for (int i = 0; i < 600; ++i) ids += std::to_string(i * i % 23) + (i % 20 == 19 ? "\n" : " ");
    folder_.Write("ids.txt", ids);
    folder_.Write("text.txt", "the w3 w4 w3\nthe w5\n");
  }
  std::string Output(const std::string& arguments) const {
    const Outcome outcome = folder_.Run("diff " + arguments);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.out;
  }
  void ExpectRefused(const std::string& arguments, const std::string& part, int status = 1) const {
    const Outcome outcome = folder_.Run("diff " + arguments);
    EXPECT_EQ(outcome.exit_status, status) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error << outcome.out;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  // The number after a key, the first one in the text.
  static double NumberAt(const std::string& text, const std::string& key) {
    const size_t at = text.find("\"" + key + "\":");
    EXPECT_NE(at, std::string::npos) << key << " in " << text;
    return at == std::string::npos ? 0 : std::stod(text.substr(at + key.size() + 3));
  }
  CommandFolder folder_;
};

TEST_F(DiffTest, TheOneTensorThatDiffersIsShown) {
  const std::string output = Output("a.kgl b.kgl");
  EXPECT_TRUE(Has(output, "layers.0.qkv.weight, relative error 0.5\n")) << output;
  EXPECT_FALSE(Has(output, "fc.0.weight"));
  EXPECT_FALSE(Has(output, "blocks\n"));
  EXPECT_TRUE(Has(Output("a.kgl a.kgl"), "the files are the same"));
  const std::string json = Output("a.kgl b.kgl --json");
  EXPECT_TRUE(Has(json, "\"name\":\"layers.0.qkv.weight\",\"same\":false")) << json;
  EXPECT_TRUE(Has(json, "\"relative_error\":0.50000000")) << json;
}

TEST_F(DiffTest, LossesAreThoseOfScore) {
  const std::string json = Output("a.kgl b.kgl --ids ids.txt --json");
  const double first = NumberAt(folder_.Run("score a.kgl --ids ids.txt --json").out, "nll");
  const double second = NumberAt(folder_.Run("score b.kgl --ids ids.txt --json").out, "nll");
  EXPECT_EQ(NumberAt(json, "nll"), first);
  const std::string difference = json.substr(json.find("\"difference\""));
  EXPECT_NEAR(NumberAt(difference, "nll"), second - first, 1e-7);
  const std::string counted = folder_.Run("count a.kgl --ids ids.txt --json").out;
  EXPECT_NEAR(NumberAt(json, "operations"),
              NumberAt(counted.substr(counted.find("\"ops\"")), "total"), 0.01);
  const std::string output = Output("a.kgl b.kgl --ids ids.txt");
  EXPECT_TRUE(Has(output, "12 blocks of 50 tokens")) << output;
  EXPECT_TRUE(Has(Output("a.kgl a.kgl --ids ids.txt"), "this text does not tell them apart"));
  EXPECT_TRUE(Has(Output("a.kgl b.kgl --text text.txt"), "too short for an interval"));
  EXPECT_EQ(Output("a.kgl b.kgl --ids ids.txt --threads 2"), output);
}

// A plain program over `score --json`: figure 3 of Yan et al. (2020) by its definition.
TEST_F(DiffTest, BinsAreThoseOfAPlainProgram) {
  std::vector<double> losses[2];
  std::vector<int> ids = {0};  // the first one is not scored
  for (const size_t side : {0, 1}) {
    const std::string model = side == 0 ? "a.kgl" : "b.kgl";
    for (const auto& line : folder_.Run("score " + model + " --ids ids.txt --json -v").Json()) {
      if (!line.contains("pos")) continue;
      losses[side].push_back(-line["logprob"].get<double>());
      if (side == 0) ids.push_back(line["id"]);
    }
  }
  constexpr int kNever = 100;
  std::map<int, std::vector<size_t>> tokens_of;  // by logarithm of the gap
  std::map<int, size_t> last = {{ids[0], 0}};
  for (size_t at = 1; at < ids.size(); ++at) {
    const auto found = last.find(ids[at]);
    const int bin =
        found == last.end()
            ? kNever
            : static_cast<int>(std::floor(std::log2(static_cast<double>(at - found->second))));
    tokens_of[bin].push_back(at - 1);
    last[ids[at]] = at;
  }
  const auto lines = folder_.Run("diff a.kgl b.kgl --ids ids.txt --by gap --json").Json();
  ASSERT_EQ(lines.size(), tokens_of.size() + 1);
  double sum = 0;
  size_t line = 0;
  for (const auto& [bin, tokens] : tokens_of) {
    const auto& found = lines[line++];
    EXPECT_EQ(found["by"], "gap");
    if (bin == kNever) {
      EXPECT_TRUE(found["to"].is_null());
    } else {
      EXPECT_EQ(found["from"], 1 << bin);
      EXPECT_EQ(found["to"], (2 << bin) - 1);
    }
    EXPECT_EQ(found["tokens"], tokens.size());
    double first = 0, second = 0;
    for (const size_t token : tokens) {
      first += losses[0][token];
      second += losses[1][token];
    }
    sum += second - first;
    const auto count = static_cast<double>(tokens.size());
    EXPECT_NEAR(found["first"]["nll"], first / count, 1e-6);
    EXPECT_NEAR(found["second"]["nll"], second / count, 1e-6);
    EXPECT_NEAR(found["difference"]["nll"], (second - first) / count, 1e-6);
    EXPECT_NEAR(found["difference"]["cumulative"], sum / static_cast<double>(losses[0].size()),
                1e-6);
  }
  const double mean = lines.back()["difference"]["nll"];
  EXPECT_NEAR(lines[lines.size() - 2]["difference"]["cumulative"], mean, 1e-8);
  const std::string text = Output("a.kgl b.kgl --ids ids.txt --by gap");
  EXPECT_TRUE(Has(text, "nats a token by gap\n")) << text;
}

TEST_F(DiffTest, BinsAreThoseOfScore) {
  folder_.Write("counts.txt", "the 12\nw3 4\nw5 1\n");
  for (const std::string by : {"--by frequency", "--by gap", "--by previous",
                               "--by frequency --counts counts.txt --bins 1,10"}) {
    const std::string options = " --ids ids.txt --json " + by;
    const auto lines = folder_.Run("diff a.kgl b.kgl" + options).Json();
    std::vector<nlohmann::ordered_json> bins[2];
    for (const size_t side : {0, 1}) {
      const std::string model = side == 0 ? "a.kgl" : "b.kgl";
      for (auto& line : folder_.Run("score " + model + options).Json()) {
        if (line.contains("by")) bins[side].push_back(std::move(line));
      }
    }
    const auto& [first, second] = bins;
    ASSERT_EQ(lines.size(), first.size() + 1) << by;
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      for (const char* key : {"by", "from", "to", "unknown", "tokens"}) {
        EXPECT_EQ(lines[i].value(key, nlohmann::ordered_json()),
                  first[i].value(key, nlohmann::ordered_json()));
      }
      EXPECT_EQ(lines[i]["first"]["nll"], first[i]["nll"]);
      EXPECT_EQ(lines[i]["second"]["nll"], second[i]["nll"]);
    }
  }
  ExpectRefused("a.kgl b.kgl --by gap", "--text FILE or --ids FILE with it", 2);
  ExpectRefused("a.kgl b.kgl --ids ids.txt --counts counts.txt", "--by frequency", 2);
  folder_.WriteModel("small.kgl", TinyMicronet({.vocabulary_size = 9}));
  folder_.Write("rare.txt", "the w3 w12\n");
  ExpectRefused("a.kgl small.kgl --text rare.txt --by previous",
                "models that give the text the same ids, so that --by has the same bins");
}

TEST_F(DiffTest, OtherNetworksAndEncodings) {
  folder_.WriteModel("quantised.kgl", TinyMicronet({.quantised = true, .cache_capacity = 8}));
  folder_.WriteModel("lstm.kgl", TinyRecurrent());
  folder_.WriteModel("coded.kgl", TinyRecurrent({.input_coding = TinyCoding{2, {5}}}));
  folder_.WriteModel("translation.kgl", TinyTranslation());
  EXPECT_TRUE(Has(Output("a.kgl quantised.kgl --ids ids.txt"), "blocks\n"));
  const std::string networks = Output("a.kgl lstm.kgl --ids ids.txt");
  EXPECT_TRUE(Has(networks, "    < none\n    > ")) << networks;
  const std::string coded = Output("lstm.kgl coded.kgl --json");
  EXPECT_TRUE(Has(coded, "codebook\",\"same\":false,\"first\":null")) << coded;
  EXPECT_TRUE(Has(Output("coded.kgl coded.kgl"), "the files are the same"));
  EXPECT_TRUE(Has(Output("translation.kgl translation.kgl"), "the files are the same"));
  ExpectRefused("translation.kgl translation.kgl --ids ids.txt", "diff --text");
}

TEST_F(DiffTest, TextsThatCannotBeCompared) {
  folder_.Write("empty.txt", "");
  folder_.Write("one.txt", "3\n");
  ExpectRefused("a.kgl b.kgl --text empty.txt", "at least one that is scored, found none");
  ExpectRefused("a.kgl b.kgl --ids one.txt", "at least one that is scored, found none");
  ExpectRefused("a.kgl missing.kgl", "missing.kgl");
  ExpectRefused("a.kgl b.kgl --ids ids.txt --text text.txt", "found both", 2);
  ExpectRefused("a.kgl b.kgl --ids -", "-", 2);
  ModelDraft started = TinyMicronet();
  started.description.start_token = 1;
  folder_.WriteModel("started.kgl", started);
  ExpectRefused(
      "a.kgl started.kgl --ids ids.txt",
      "expected models that split the text into the same number of tokens, found 599 by a.kgl, "
      "600 by started.kgl");
}

}  // namespace
}  // namespace kinglet::diff_test
