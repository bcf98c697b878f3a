// Checkpoints as people have them (tests/data/checkpoint-forms, made by its make_forms.py): each
// converts, with PyTorch's log-probabilities, or fails with a line that names the next step. The
// commands and their output are in transcript.txt.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/tools/run_command.h"

namespace kinglet::checkpoint_forms_test {
namespace {

const std::string kForms = KINGLET_TEST_DATA "/checkpoint-forms";

// The lines of a conversion's output that do not depend on the model file's layout: notes, and the
// number of golden values. Complete errors and complete JSON.
std::string Shortened(const Outcome& outcome) {
  std::string text;
  for (const std::string& line : outcome.Lines()) {
    if (line.starts_with("golden: ")) {
      text += line.substr(0, line.find(", largest")) + "\n";
    } else if (line.starts_with("note: ") || line.starts_with("{")) {
      text += line + "\n";
    }
  }
  // The list of families does not matter for this test.
  constexpr std::string_view kList = "this build recognises (";
  std::string error = outcome.error;
  if (const size_t at = error.find(kList); at != error.npos) {
    const size_t begin = at + kList.size();
    error.replace(begin, error.find(')', begin) - begin, "..");
  }
  return text + error;
}

// KINGLET_UPDATE_TRANSCRIPT names a file that gets the present transcript.
TEST(CheckpointForms, Transcript) {
  const CommandFolder folder;
  std::filesystem::copy(kForms, folder.Path("."), std::filesystem::copy_options::recursive);
  std::ifstream expected(kForms + "/transcript.txt");
  ASSERT_TRUE(expected.good());
  std::ostringstream now, before;
  size_t commands = 0, conversions = 0, refusals = 0;
  std::string settings;
  for (std::string line; std::getline(expected, line);) {
    before << line << "\n";
    if (line.starts_with("#")) now << line << "\n";
    if (line.starts_with("$ CHECK=")) {
      settings = line.substr(2) + "; ";
      now << line << "\n";
      continue;
    }
    if (!line.starts_with("$ ")) continue;
    ++commands;
    const Outcome outcome = folder.RunShell(settings + line.substr(2));
    now << line << "\n" << Shortened(outcome);
    conversions += outcome.out.find("golden: ") != std::string::npos ? 1 : 0;
    if (outcome.exit_status == 0) continue;
    ++refusals;
    EXPECT_TRUE(outcome.IsRefusal()) << line << "\n" << outcome.out << outcome.error;
    // The next step ends the line, or is what was expected; a missing file has none.
    const std::string& error = outcome.error;
    EXPECT_TRUE(error.ends_with(")\n") || error.ends_with("--help`.\n") ||
                error.ends_with("No such file or directory\n") ||
                error.find("recipe") != error.npos || error.find("(name the file") != error.npos ||
                error.find("trust-recipe-paths") != error.npos)
        << line << "\n"
        << error;
  }
  EXPECT_EQ(now.str(), before.str());
  EXPECT_GE(conversions, 20u);
  EXPECT_GE(refusals, 10u);
  EXPECT_GT(commands, conversions + refusals);
  if (const char* update = std::getenv("KINGLET_UPDATE_TRANSCRIPT")) {
    std::ofstream(update) << now.str();
  }
}

}  // namespace
}  // namespace kinglet::checkpoint_forms_test
