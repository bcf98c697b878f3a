#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "tests/tools/run_command.h"

namespace kinglet::plan_command_test {
namespace {

class PlanCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(KINGLET_TEST_DATA "/micronet-small-fp32", folder_.Path("c"),
                          std::filesystem::copy_options::recursive);
    folder_.Write("text.txt", "= The =\n the of and , . the of\n");
    static std::string measured;  // for all tests
    if (!measured.empty()) return folder_.Write("s.json", measured);
    ASSERT_EQ(folder_
                  .Run("sensitivity c --vocab c/vocab.txt --ids c/tokens.txt --calibrate "
                       "text.txt --sparsities 0.3,0.6,0.8 --bits 3,4,6 --codes 2x8 --tensors "
                       "loss.layers.0.weight "
                       "'*.qkv.weight' '*.fc.3.weight' -o s.json")
                  .exit_status,
              0);
    measured = folder_.Read("s.json");
  }
  void ExpectRefused(const std::string& arguments, const std::string& part, int status = 1) {
    const Outcome outcome = folder_.Run("plan " + arguments);
    EXPECT_EQ(outcome.exit_status, status) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error << outcome.out;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  }
  CommandFolder folder_;
};

TEST_F(PlanCommandTest, WritesARecipeThatConvertTakesAndKeepsTheSize) {
  ASSERT_EQ(folder_.Run("convert c --vocab c/vocab.txt --bits 8 -o eight.kgl").exit_status, 0);
  const auto size = std::filesystem::file_size(folder_.Path("eight.kgl"));
  const std::string plan =
      "plan s.json --size " + std::to_string(size) + " --check-ids c/tokens.txt --json -o ";
  const Outcome outcome = folder_.Run(plan + "r.json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  const auto line = outcome.Json().back();
  EXPECT_LE(line["measured"]["bytes"].get<uint64_t>(), size);
  EXPECT_LE(line["predicted"]["bytes"].get<uint64_t>(), size);
  // --check measures the model of convert as score does.
  ASSERT_EQ(folder_.Run("convert c --vocab c/vocab.txt --recipe r.json -o m.kgl").exit_status, 0);
  const auto score = folder_.Run("score m.kgl --ids c/tokens.txt --json").Json().back();
  EXPECT_EQ(score["nll"], line["measured"]["nll"]);
  EXPECT_EQ(std::filesystem::file_size(folder_.Path("m.kgl")),
            line["measured"]["bytes"].get<uint64_t>());
  ASSERT_EQ(folder_.Run(plan + "again.json").exit_status, 0);
  EXPECT_EQ(folder_.Read("again.json"), folder_.Read("r.json"));
}

// A text of which no word is in the second bin.
TEST_F(PlanCommandTest, NamesWhatNoWordOfTheTextUses) {
  const std::string data = KINGLET_TEST_DATA "/kinglet-torch/binned-three/";
  const std::string unused = "no word of the text uses 'embedding.1.table'";
  const Outcome measured = folder_.Run("sensitivity " + data + "model.pt --ids " + data +
                                       "tokens.txt --sparsities 0.5 --bits 2,5 -o u.json");
  ASSERT_EQ(measured.exit_status, 0) << measured.error;
  EXPECT_NE(measured.error.find(unused), std::string::npos) << measured.error;
  const Outcome planned = folder_.Run("plan u.json --size 20000 -o r.json --json");
  ASSERT_EQ(planned.exit_status, 0) << planned.error;
  EXPECT_NE(planned.error.find(unused), std::string::npos) << planned.error;
  const auto line = planned.Json().back();
  for (const auto& tensor : line["tensors"]) {
    if (tensor["tensor"] != "embedding.1.table") continue;
    EXPECT_EQ(tensor["bits"], 5);
  }
}

// Chance explains two standard errors of a right prediction. The text is that of the sensitivities.
TEST_F(PlanCommandTest, SaysWhenThePredictionWasWrong) {
  size_t notes = 0, silent = 0;
  for (const std::string target : {"--sparsity 0", "--sparsity 0.7", "--ppl +5", "--ppl +500"}) {
    const std::string plan = "plan s.json " + target + " -o r.json --check-ids c/tokens.txt";
    const Outcome outcome = folder_.Run(plan + " --json");
    ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
    const auto line = outcome.Json().back();
    const double off =
        line["measured"]["more"].get<double>() - line["predicted"]["more"].get<double>();
    const bool wrong = std::fabs(off) > 2 * line["measured"]["standard_error"].get<double>();
    EXPECT_EQ(outcome.error.find("standard errors off") != std::string::npos, wrong)
        << target << outcome.error;
    (wrong ? notes : silent) += 1;
  }
  EXPECT_GT(notes, 0u);
  EXPECT_GT(silent, 0u);
  // The text is too short for a decision.
  folder_.Write("few.txt", "1 2 3 4 5");
  const Outcome few =
      folder_.Run("plan s.json --sparsity 0.7 -o r.json --check-ids few.txt --json");
  EXPECT_TRUE(few.Json().back()["measured"]["standard_error"].is_null()) << few.error;
  EXPECT_EQ(few.error.find("standard errors"), std::string::npos) << few.error;
}

TEST_F(PlanCommandTest, SparsitiesAreReached) {
  const Outcome outcome =
      folder_.Run("plan s.json --sparsity 0.55 -o r.json --json --check-ids c/tokens.txt");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  const auto line = outcome.Json().back();
  EXPECT_NEAR(line["predicted"]["sparsity"].get<double>(), 0.55, 1e-6);
  EXPECT_NEAR(line["predicted"]["bytes"].get<double>(), line["measured"]["bytes"].get<double>(),
              1024);
  EXPECT_NE(folder_.Read("r.json").find("\"fractions\""), std::string::npos);
  EXPECT_EQ(folder_.Run("plan s.json --ppl +1 -o r.json").exit_status, 0);
  EXPECT_EQ(folder_.Run("plan s.json --operations 1e9 -o r.json").exit_status, 0);
}

TEST_F(PlanCommandTest, RefusesInOneLine) {
  ExpectRefused("s.json --size 10 -o r.json", "plan: size: expected at least ");
  ExpectRefused("s.json --sparsity 0.99 -o r.json", "plan: sparsity: expected at most 0.8");
  ExpectRefused("s.json --operations 1 --rules executed -o r.json",
                "under the executed rules only codes change the count");
  ExpectRefused("s.json -o r.json", "--sparsity R, --size BYTES", 2);
  ExpectRefused("s.json --sparsity 0.5 --size 9 -o r.json", "several", 2);
  ExpectRefused("none.json --sparsity 0.5 -o r.json", "none.json");
  ExpectRefused("s.json --sparsity 0.5 -o s.json", "a path that is not an input");
  folder_.Write("text.json", "{\"a\":1}\n");
  ExpectRefused("text.json --sparsity 0.5 -o r.json", "sensitivity file: text.json, line 1, ");
  folder_.Write("empty.json", "");
  ExpectRefused("empty.json --sparsity 0.5 -o r.json", "lines of `kinglet sensitivity`");
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("r.json")));
  // Sensitivities of another model: the checkpoint has changed.
  std::string first = folder_.Read("s.json");
  first.replace(first.find("\"digest\":\"") + 10, 4, "0000");
  folder_.Write("other.json", first);
  ExpectRefused("other.json --sparsity 0.5 -o r.json --check-ids c/tokens.txt",
                "other.json: expected sensitivities of c as it is");
}

TEST_F(PlanCommandTest, AFullDiskLeavesTheOldRecipe) {
  folder_.Write("old.json", "old");
  const Outcome outcome =
      folder_.RunShell("ulimit -f 1; trap '' XFSZ; kinglet plan s.json --ppl +1 -o old.json");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_TRUE(outcome.IsRefusal()) << outcome.error << outcome.out;
  EXPECT_EQ(folder_.Read("old.json"), "old");
}

}  // namespace
}  // namespace kinglet::plan_command_test
