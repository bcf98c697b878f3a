// The program, run as its users run it, and the sentence of docs/PAPERS.md about it.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "tests/tools/run_command.h"

namespace kinglet::papers_test {
namespace {

class PapersTest : public testing::Test {
 protected:
  Outcome Run(const std::string& arguments) const {
    return folder_.RunShell(std::string(KINGLET_PAPERS) + " " + arguments);
  }
  CommandFolder folder_;
};

TEST_F(PapersTest, EveryNumberAgreesOrDiffersForAReasonAndThePageCountsThem) {
  const Outcome outcome = Run("");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.out << outcome.error;
  std::smatch counts;
  const std::regex last(
      "\n(\\d+) numbers agree, (\\d+) differ for the reason given, 0 disagree\n$");
  ASSERT_TRUE(std::regex_search(outcome.out, counts, last)) << outcome.out;
  std::ifstream file(std::string(KINGLET_DOCS) + "/PAPERS.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = std::regex_replace(page.str(), std::regex("\\s+"), " ");
  EXPECT_NE(text.find(counts[1].str() + " numbers agree in all printed digits"), std::string::npos)
      << counts[0];
  EXPECT_NE(text.find(", and " + counts[2].str() + " differ for the reason given"),
            std::string::npos)
      << counts[0];
}

TEST_F(PapersTest, PrintsOnePaper) {
  const Outcome slim = Run("--only slim");
  EXPECT_EQ(slim.exit_status, 0) << slim.error;
  EXPECT_TRUE(slim.out.starts_with("Slim embedding")) << slim.out;
  EXPECT_NE(slim.out.find("docs/lab/measured_once.md"), std::string::npos);
  EXPECT_EQ(slim.out.find("MicroNet"), std::string::npos);
  EXPECT_EQ(Run("--only bert").exit_status, 2);
}

}  // namespace
}  // namespace kinglet::papers_test
