#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/tools/run_command.h"

namespace kinglet::tune_cache_test {
namespace {

class TuneCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.quantised = true, .cache_capacity = 10}));
    folder_.WriteModel("plain.kgl", TinyMicronet());
    std::string text;
    for (int line = 0; line < 20; ++line) {
      const std::string word = "w" + std::to_string(3 + line % 7);
      text += "the " + word + " " + word + " strange the " + word + "\n";
    }
    folder_.Write("text.txt", text);
  }
  // The command fails in one line and leaves no file.
  void ExpectRefused(const std::string& arguments, const std::string& part) {
    const Outcome outcome = folder_.Run("tune-cache " + arguments);
    EXPECT_EQ(outcome.exit_status, 1) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error << outcome.out;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
    EXPECT_NE(folder_.Run("inspect out.kgl").exit_status, 0) << arguments;
  }
  CommandFolder folder_;
};

TEST_F(TuneCacheTest, PrintsThePathAndWhatScoreSays) {
  const Outcome outcome = folder_.Run("tune-cache m.kgl --text text.txt -o out.kgl --json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  const auto lines = outcome.Json();
  ASSERT_GT(lines.size(), 10U);
  double best = HUGE_VAL;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : lines[i].items()) keys.push_back(key);
    ASSERT_EQ(keys, (std::vector<std::string>{"lambda", "theta", "nll", "ppl", "accepted"}));
    const double loss = lines[i]["nll"];
    EXPECT_NEAR(lines[i]["ppl"].get<double>(), std::exp(loss), 1e-5);
    EXPECT_EQ(lines[i]["accepted"].get<bool>(), loss < best);
    if (loss < best) best = loss;
  }
  const auto& summary = lines.back();
  std::vector<std::string> keys;
  for (const auto& [key, value] : summary.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"tokens", "scored", "oov", "before", "after",
                                            "searched_nll", "digest"}));
  EXPECT_EQ(summary["tokens"], 140);
  EXPECT_EQ(summary["scored"], 139);
  EXPECT_EQ(summary["oov"], 20);
  const auto score = [this](const char* model) {
    return folder_.Run(std::string("score ") + model + " --text text.txt --json").Json().back();
  };
  EXPECT_EQ(summary["before"]["nll"], score("m.kgl")["nll"]);
  EXPECT_EQ(summary["after"]["nll"], score("out.kgl")["nll"]);
  EXPECT_EQ(summary["after"]["ppl"], score("out.kgl")["ppl"]);
  EXPECT_LT(summary["after"]["nll"].get<double>(), summary["before"]["nll"].get<double>());
  EXPECT_NEAR(summary["searched_nll"].get<double>(), summary["after"]["nll"].get<double>(), 1e-5);
  EXPECT_NEAR(summary["searched_nll"].get<double>(), best, 1e-8);
  EXPECT_EQ(summary["after"]["cache"], 10);
  EXPECT_EQ(summary["digest"], folder_.Run("inspect out.kgl --json").Json()[0]["digest"]);
  EXPECT_EQ(folder_.Run("verify out.kgl").exit_status, 0);
}

TEST_F(TuneCacheTest, PrintsATableForPeople) {
  const Outcome outcome =
      folder_.Run("tune-cache plain.kgl --text - --cache 5 -o out.kgl", folder_.Read("text.txt"));
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  const std::vector<std::string> lines = outcome.Lines();
  ASSERT_GT(lines.size(), 8U);
  EXPECT_EQ(lines[0], "lambda           theta            perplexity      accepted");
  EXPECT_EQ(lines[1].find("0.1              0.016            "), 0U) << lines[1];
  EXPECT_TRUE(lines[1].ends_with("*"));
  const std::vector<std::string> labels = {"tokens        140", "unknown words 20",
                                           "before        ", "after         ", "digest        "};
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(lines[lines.size() - labels.size() + i].find(labels[i]), 0U);
  }
  EXPECT_TRUE(lines[lines.size() - 3].ends_with(", no cache")) << lines[lines.size() - 3];
  EXPECT_NE(lines[lines.size() - 2].find(", cache 5, lambda "), std::string::npos);
}

TEST_F(TuneCacheTest, TwiceAndWithThreadsTheSameBytes) {
  const std::string one = folder_.Run("tune-cache m.kgl --text text.txt -o a.kgl").out;
  EXPECT_EQ(folder_.Run("tune-cache m.kgl --text text.txt -o b.kgl --threads 3").out, one);
  EXPECT_EQ(folder_.Read("a.kgl"), folder_.Read("b.kgl"));
  // Another instruction set gives the same file.
  EXPECT_EQ(
      folder_.RunShell("KINGLET_CPU=scalar kinglet tune-cache m.kgl --text text.txt -o c.kgl").out,
      one);
  EXPECT_EQ(folder_.Read("a.kgl"), folder_.Read("c.kgl"));
}

// A trained model on text that it was not trained on: tuning improves on the checkpoint's values,
// and from the published start it ends near the same place.
TEST_F(TuneCacheTest, TheBundledModelGetsBetterOnItsPassage) {
  const std::string demo = KINGLET_DEMO_DATA;
  const auto tune = [&](const std::string& convert, const std::string& options) {
    EXPECT_EQ(
        folder_.Run("convert " + demo + " --vocab " + demo + "/vocab.txt " + convert).exit_status,
        0);
    const Outcome outcome =
        folder_.Run("tune-cache d.kgl --text " + demo + "/passage.txt -o t.kgl --json " + options);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.Json().back();
  };
  const auto own = tune("-o d.kgl", "");
  EXPECT_EQ(own["before"]["lambda"], 0.24);
  EXPECT_LT(own["after"]["ppl"].get<double>(), own["before"]["ppl"].get<double>() - 0.1);
  const auto fresh = tune("-o d.kgl --cache 0", "--cache 2000");
  EXPECT_EQ(fresh["before"]["cache"], 0);
  EXPECT_NEAR(fresh["after"]["nll"].get<double>(), own["after"]["nll"].get<double>(), 1e-4);
}

TEST_F(TuneCacheTest, IdsServeModelsWithoutWords) {
  TinyOptions options;
  options.vocabulary = false;
  options.cache_capacity = 3;
  folder_.WriteModel("ids.kgl", TinyMicronet(options));
  folder_.Write("ids.txt", "1 2 3 1 2 3 1 2 3 4 5 4 5\n");
  EXPECT_EQ(folder_.Run("tune-cache ids.kgl --ids ids.txt -o out2.kgl").exit_status, 0);
  ExpectRefused("ids.kgl --text text.txt -o out.kgl", "expected");
}

TEST_F(TuneCacheTest, RefusalsAreOneLine) {
  folder_.Write("empty.txt", "");
  folder_.Write("line.txt", "\n");
  folder_.Write("damaged.kgl", folder_.Read("m.kgl").substr(0, 1000));
  ExpectRefused("plain.kgl --text text.txt -o out.kgl", "or a capacity (--cache), found neither");
  ExpectRefused("m.kgl --text empty.txt -o out.kgl", "expected two tokens or more, found 0");
  ExpectRefused("m.kgl --text line.txt -o out.kgl", "expected two tokens or more, found 1");
  ExpectRefused("m.kgl --text none.txt -o out.kgl", "none.txt");
  ExpectRefused("none.kgl --text text.txt -o out.kgl", "none.kgl");
  ExpectRefused("damaged.kgl --text text.txt -o out.kgl", "damaged.kgl");
  ExpectRefused("m.kgl --text text.txt -o none/out.kgl", "a folder that exists");
  ExpectRefused("m.kgl --text text.txt -o .", "a folder");
  ExpectRefused("m.kgl --text text.txt -o /dev/null", "no regular file");
}

TEST_F(TuneCacheTest, NoInputIsOverwritten) {
  const std::string model = folder_.Read("m.kgl"), text = folder_.Read("text.txt");
  ExpectRefused("m.kgl --text text.txt -o m.kgl", "a path that is not an input");
  ExpectRefused("m.kgl --text text.txt -o ./text.txt", "a path that is not an input");
  EXPECT_EQ(folder_.Read("m.kgl"), model);
  EXPECT_EQ(folder_.Read("text.txt"), text);
}

TEST_F(TuneCacheTest, AFullDiskLeavesTheOldFile) {
  folder_.Write("old.kgl", "old");
  const Outcome outcome = folder_.RunShell(
      "ulimit -f 1; trap '' XFSZ; kinglet tune-cache m.kgl --text text.txt -o old.kgl");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_TRUE(outcome.IsRefusal()) << outcome.error << outcome.out;
  EXPECT_EQ(folder_.Read("old.kgl"), "old");
}

}  // namespace
}  // namespace kinglet::tune_cache_test
