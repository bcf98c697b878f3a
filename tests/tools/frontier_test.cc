#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/tools/run_command.h"
#include "tools/technique_grid.h"

namespace kinglet::frontier_test {
namespace {

const std::string kModel = "c --cache 0 --vocab c/vocab.txt --tokenizer wikitext";
const std::string kRun = "frontier " + kModel +
                         " --text text.txt --sizes 500kB,300kB,1kB --techniques bits,sum,low-rank "
                         "--plan-tokens 20 -o ";

class FrontierTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(KINGLET_TEST_DATA "/micronet-small-fp32", folder_.Path("c"),
                          std::filesystem::copy_options::recursive);
    std::string text, words = folder_.Read("c/vocab.txt");
    for (size_t at = 0, i = 0; i < 40; ++i) {
      const size_t end = words.find('\n', at);
      text += words.substr(at, end - at) + (i % 9 == 8 ? "\n" : " ");
      at = end + 1;
    }
    folder_.Write("text.txt", text + "\n");
  }
  CommandFolder folder_;
  inline static std::string whole_;  // the file of kRun, from the first test on
};

// Each recipe gives a model of the bytes and the perplexity of its line, at most of the size asked.
TEST_F(FrontierTest, RecipesGiveTheModels) {
  const Outcome outcome = folder_.Run(kRun + "f.json --plot f.svg --json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_EQ(folder_.Read("f.json"), outcome.out);
  whole_ = outcome.out;
  std::set<std::string> techniques;
  const auto points = outcome.Json();
  for (const auto& point : points) {
    const std::string technique = point["technique"];
    techniques.insert(technique);
    ASSERT_EQ(
        folder_
            .Run("convert " + kModel + " -o m.kgl --recipe " + point["recipe"].get<std::string>())
            .exit_status,
        0);
    EXPECT_EQ(std::filesystem::file_size(folder_.Path("m.kgl")), point["bytes"]);
    const auto score = folder_.Run("score m.kgl --text text.txt --json").Json().back();
    EXPECT_EQ(score["ppl"], point["ppl"]);
    EXPECT_EQ(score["scored"], point["scored"]);
    if (technique != "none") {
      EXPECT_LE(point["bytes"], point["size"]);
    }
    // The definition: no other point is smaller in one figure and not larger in the other.
    const bool beaten = std::any_of(points.begin(), points.end(), [&](const auto& other) {
      return other["bytes"] <= point["bytes"] && other["ppl"] <= point["ppl"] &&
             (other["bytes"] < point["bytes"] || other["ppl"] < point["ppl"]);
    });
    EXPECT_EQ(point["on_frontier"], !beaten);
  }
  EXPECT_TRUE(techniques.contains("none"));
  EXPECT_TRUE(techniques.contains("bits"));
  EXPECT_TRUE(techniques.contains("bits+low-rank"));
  EXPECT_TRUE(folder_.Read("f.svg").starts_with("<svg "));
}

TEST_F(FrontierTest, ThreadsAndInterruptionsGiveTheSameBytes) {
  if (whole_.empty()) whole_ = folder_.Run(kRun + "f.json --json").out;
  std::filesystem::remove(folder_.Path("f.json"));
  for (const char* const seconds : {"0.1", "0.4", "0.8"}) {
    folder_.RunShell(std::string("(timeout -s KILL ") + seconds + " kinglet " + kRun +
                     "f.json) > killed 2>&1");
  }
  ASSERT_EQ(folder_.Run(kRun + "f.json --threads 2").exit_status, 0);
  EXPECT_EQ(folder_.Read("f.json"), whole_);
  ASSERT_EQ(folder_.Run(kRun + "f.json").exit_status, 0);  // nothing is left to do
  EXPECT_EQ(folder_.Read("f.json"), whole_);
  // Another text, another checkpoint's options, another file.
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  };
  refused(kRun + "f.json --scale-by mse", "another run's");
  folder_.Write("mine.json", "not a line of it");
  refused(kRun + "mine.json", "mine.json, line 1");
  EXPECT_EQ(folder_.Read("mine.json"), "not a line of it");
  EXPECT_EQ(folder_.Read("f.json"), whole_);
}

TEST_F(FrontierTest, WrongOptionsAreOneLine) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = folder_.Run("frontier " + kModel + " -o f.json " + arguments);
    EXPECT_EQ(outcome.exit_status, 2) << outcome.error;
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  };
  refused("--text text.txt --sizes 1.2GB", "--sizes: expected sizes such as 1.2MB");
  refused("--text text.txt --sizes 1MB,,2MB", "found \"\"");
  refused("--text text.txt --techniques bits+magic", "found \"magic\"");
  refused("", "--text");
}

TEST(TechniqueGrid, OnlyWhatATableTakes) {
  std::set<Technique> all;
  for (size_t i = 0; i < kTechniqueNames.size(); ++i) all.insert(static_cast<Technique>(i));
  std::map<Technique, int> counts;
  for (const TensorChange& change : ChangesOf(all, {2000, 16})) ++counts[TechniqueOf(change)];
  EXPECT_EQ(counts.size(), kTechniqueNames.size());
  for (const TensorChange& change : ChangesOf(all, {20})) {
    EXPECT_EQ(TechniqueOf(change), Technique::kBits);
  }
}

}  // namespace
}  // namespace kinglet::frontier_test
