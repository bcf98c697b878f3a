// The program, run as its users run it.
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/run_command.h"

namespace kinglet::techniques_test {
namespace {

class TechniquesTest : public testing::Test {
 protected:
  Outcome Run(const std::string& arguments) const {
    return folder_.RunShell(std::string(KINGLET_TECHNIQUES) + " " + arguments);
  }
  CommandFolder folder_;
};

TEST_F(TechniquesTest, PrintsTheRowsAskedFor) {
  folder_.Write("text.txt", "the <unk> of the <unk>\n");
  const Outcome outcome = Run("--only float16 --text text.txt");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  const auto lines = outcome.Lines();
  ASSERT_EQ(lines.size(), 7u) << outcome.out;  // a blank, title, blank, two of titles, two rows
  EXPECT_TRUE(lines[5].starts_with("| adaptive, tied, float32 | `convert wikitext2 --cache 0` |"));
  EXPECT_NE(lines[5].find("| 1.00 | - |"), std::string::npos) << lines[5];
  EXPECT_NE(lines[6].find("--recipe wikitext2-float16.json"), std::string::npos);
}

TEST_F(TechniquesTest, AConversionThatFailsIsAnError) {
  folder_.Write("text.txt", "the <unk> of the <unk>\n");
  const Outcome outcome = Run("--only float16 --text text.txt --models missing");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_TRUE(outcome.error.starts_with("techniques: convert full.pt: ")) << outcome.error;
  EXPECT_EQ(Run("--only float16 --text missing.txt").exit_status, 1);
  EXPECT_EQ(Run("--deep").exit_status, 2);
}

}  // namespace
}  // namespace kinglet::techniques_test
