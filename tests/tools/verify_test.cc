#include <gtest/gtest.h>

#include <string>

#include "tests/tools/run_command.h"

namespace kinglet::verify_test {
namespace {

TEST(Verify, AnUndamagedModelIsGood) {
  const CommandFolder folder;
  folder.WriteModel("m.kgl", TinyMicronet());
  const Outcome outcome = folder.Run("verify m.kgl --json");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
  const auto report = outcome.Json().at(0);
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["digest"], folder.Run("inspect m.kgl --json").Json().at(0)["digest"]);
  EXPECT_EQ(report["golden_values"], 0);
  EXPECT_EQ(folder.Run("verify m.kgl").exit_status, 0);
}

TEST(Verify, DamageAnywhereIsFoundAndPlaced) {
  const CommandFolder folder;
  folder.WriteModel("m.kgl", TinyMicronet());
  const std::string bytes = folder.Read("m.kgl");
  for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 40) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    folder.Write("d.kgl", damaged);
    const Outcome outcome = folder.Run("verify d.kgl --json");
    EXPECT_EQ(outcome.exit_status, 1) << "byte " << at;
    const auto report = outcome.Json().at(0);
    EXPECT_EQ(report["ok"], false);
    EXPECT_NE(report["where"], "");
    EXPECT_NE(report["expected"], "");
    EXPECT_NE(report["found"], "");
    EXPECT_EQ(report.size(), 4u);
    EXPECT_EQ(outcome.error, "kinglet: d.kgl: " + report["where"].get<std::string>() +
                                 ": expected " + report["expected"].get<std::string>() +
                                 ", found " + report["found"].get<std::string>() + "\n");
  }
  folder.Write("d.kgl", bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(folder.Run("verify d.kgl").exit_status, 1);
  folder.Write("d.kgl", bytes + '\0');
  EXPECT_EQ(folder.Run("verify d.kgl").exit_status, 1);
}

class GoldenTest : public testing::Test {
 protected:
  void WriteModelWithGolden(double shift, double tolerance) {
    ModelDraft draft = TinyMicronet();
    folder_.WriteModel("m.kgl", draft);
    GoldenVector golden;
    golden.ids = {3, 1, 4, 1, 5};
    golden.log_probabilities = LibraryScores(folder_.Path("m.kgl"), "ref64", golden.ids);
    golden.log_probabilities[2] -= shift;
    golden.tolerance = tolerance;
    draft.description.golden = golden;
    folder_.WriteModel("m.kgl", draft);
  }
  CommandFolder folder_;
};

TEST_F(GoldenTest, ValuesWithinTheToleranceAreGood) {
  WriteModelWithGolden(1e-7, 1e-6);
  const Outcome outcome = folder_.Run("verify m.kgl --json");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_EQ(outcome.Json().at(0)["golden_values"], 4);
  EXPECT_NEAR(outcome.Json().at(0)["largest_difference"].get<double>(), 1e-7, 1e-12);
}

TEST_F(GoldenTest, AValueBeyondItIsNamed) {
  WriteModelWithGolden(1e-5, 1e-6);
  const Outcome outcome = folder_.Run("verify m.kgl --json");
  EXPECT_EQ(outcome.exit_status, 1);
  const auto report = outcome.Json().at(0);
  EXPECT_EQ(report["ok"], false);
  EXPECT_NE(report["where"].get<std::string>().find("position 3"), std::string::npos) << report;
}

}  // namespace
}  // namespace kinglet::verify_test
