// The recipes of examples/recipes that need no family for a Transformer, or that replace a family's
// tables. Checkpoints: those in tests/data, and those of the folder that the environment variable
// KINGLET_CHECKPOINTS names, which the original frameworks wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/run_command.h"

namespace kinglet::table_recipes_test {
namespace {

const std::string kRecipes = KINGLET_EXAMPLES "/recipes/";

struct Blocks {
  const char* recipe;
  const char* checkpoint;  // in tests/data
  const char* folder;      // of its answers
};

class BlockRecipe : public testing::TestWithParam<Blocks> {};

TEST_P(BlockRecipe, EqualsTheFrameworksEquations) {
  const CommandFolder folder;
  const std::string data = std::string(KINGLET_TEST_DATA "/") + GetParam().folder + "/";
  const Outcome converted =
      folder.Run("convert " KINGLET_TEST_DATA "/" + std::string(GetParam().checkpoint) +
                 " -o m.kgl --recipe " + kRecipes + GetParam().recipe + ".json --golden " + data +
                 "golden_f64.tsv --ids " + data + "tokens.txt --tolerance 1e-6");
  EXPECT_EQ(converted.exit_status, 0) << converted.error;
}
INSTANTIATE_TEST_SUITE_P(
    All, BlockRecipe,
    testing::Values(Blocks{"blocks-transformer-xl", "transformer-xl-variants/kimi-base/model.pt",
                           "transformer-xl-variants/kimi-base"},
                    Blocks{"blocks-fairseq", "fairseq-variants/args-tied-legacy/model.pt",
                           "fairseq-variants/args-tied-legacy"},
                    Blocks{"blocks-micronet", "micronet-small-fp32/models/model-400.pth",
                           "micronet-small-fp32"}),
    [](const auto& instance) {
      std::string name = instance.param.recipe;
      name.erase(name.find('-'), 1);
      for (size_t at; (at = name.find('-')) != std::string::npos;) name.erase(at, 1);
      return name;
    });

// The last column of each line, and the one before the last.
std::vector<double> LastColumn(const std::string& text) {
  std::vector<double> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    values.push_back(std::stod(line.substr(line.find_last_of(" \t") + 1)));
  }
  return values;
}

struct Original {
  const char* checkpoint;  // a folder
  const char* recipe;
  bool translates;
};

class OriginalTables : public testing::TestWithParam<Original> {
 protected:
  void SetUp() override {
    const char* place = std::getenv("KINGLET_CHECKPOINTS");
    data_ = std::string(place == nullptr ? "" : place) + "/" + GetParam().checkpoint + "/";
    if (place == nullptr || !std::filesystem::exists(data_)) {
      GTEST_SKIP() << "KINGLET_CHECKPOINTS names no folder with " << GetParam().checkpoint;
    }
    golden_ = data_ + (GetParam().translates ? "golden.tsv" : "golden_f64.tsv");
    convert_ =
        "convert " + data_ + "model.pt -o m.kgl --recipe " + kRecipes + GetParam().recipe + ".json";
    if (!GetParam().translates) {
      convert_ += " --config " + data_ + "config.yaml --vocab " + data_ + "vocab.txt";
    }
    tokens_ = std::string(GetParam().translates ? " --pairs " : " --ids ") + data_ + "tokens.txt";
  }
  std::vector<double> Scores(const std::string& backend) const {
    const Outcome scored = folder_.Run("score m.kgl --json --backend " + backend + tokens_);
    EXPECT_EQ(scored.exit_status, 0) << scored.error;
    std::vector<double> scores;
    for (const auto& line : scored.Json()) {
      if (line.contains("hex") || !line.contains("logprob")) continue;
      scores.push_back(line["logprob"].get<double>());
    }
    return scores;
  }
  std::vector<std::string> Bits(const std::string& backend) const {
    const Outcome scored = folder_.Run("score m.kgl --json --hex --backend " + backend + tokens_);
    std::vector<std::string> bits;
    for (const auto& line : scored.Json()) {
      if (line.contains("hex")) bits.push_back(line["hex"].get<std::string>());
    }
    EXPECT_GT(bits.size(), 100u);
    return bits;
  }
  void ExpectCountedAndTimed() const {
    const std::string ids = GetParam().translates ? "" : tokens_;
    const Outcome count = folder_.Run("count m.kgl --json" + tokens_);
    EXPECT_EQ(count.exit_status, 0) << count.error;
    EXPECT_GT(count.Json().at(0)["ops"]["total"].get<double>(), 1000);
    const Outcome bench = folder_.Run("bench m.kgl --json --tokens 40 --rounds 1 --lanes 2" + ids);
    EXPECT_EQ(bench.exit_status, 0) << bench.error;
  }

  std::string data_, golden_, convert_, tokens_;
  const CommandFolder folder_;
};

TEST_P(OriginalTables, EqualsTheFramework) {
  const Outcome converted = folder_.Run(convert_ + " --golden " + golden_ + " --ids " + data_ +
                                        "tokens.txt --tolerance 1e-6");
  ASSERT_EQ(converted.exit_status, 0) << converted.error;
  std::ifstream file(golden_);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::vector<double> expected = LastColumn(text), found = Scores("cpu");
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
  EXPECT_EQ(Bits("ref"), Bits("cpu"));
  ExpectCountedAndTimed();
}

TEST_P(OriginalTables, QuantisedAndCalibratedItHasTheSameBitsOnBothBackends) {
  ASSERT_EQ(folder_.Run(convert_ + " --bits 9").exit_status, 0);
  EXPECT_EQ(Bits("ref"), Bits("cpu"));
  std::string text = data_ + "tokens.txt";
  if (!GetParam().translates) {
    std::ifstream vocabulary(data_ + "vocab.txt"), ids(text);
    std::vector<std::string> words;
    for (std::string word; std::getline(vocabulary, word);) words.push_back(word);
    std::string written;
    for (size_t id; ids >> id;) written += words.at(id) == "<eos>" ? "\n" : words[id] + " ";
    folder_.Write("text", written);
    text = "text";
  }
  const Outcome calibrated = folder_.Run(convert_ + " --bits 9 --calibrate " + text);
  ASSERT_EQ(calibrated.exit_status, 0) << calibrated.error;
  EXPECT_EQ(Bits("ref"), Bits("cpu"));
  ExpectCountedAndTimed();
}

INSTANTIATE_TEST_SUITE_P(
    All, OriginalTables,
    testing::Values(Original{"reference-txl-define", "reference-txl-define", false},
                    Original{"reference-txl-dpq", "reference-txl-dpq", false},
                    Original{"reference-txl-dpq", "reference-txl-dpq-codes", false},
                    Original{"reference-opennmt-dpq", "reference-opennmt-dpq", true},
                    Original{"reference-opennmt-dpq", "reference-opennmt-dpq-codes", true}),
    [](const auto& instance) {
      std::string name = instance.param.recipe;
      for (size_t at; (at = name.find('-')) != std::string::npos;) name.erase(at, 1);
      return name;
    });

}  // namespace
}  // namespace kinglet::table_recipes_test
