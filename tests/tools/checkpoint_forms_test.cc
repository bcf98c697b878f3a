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

// Whether a refusal ends with the next step, or with the place where a program's help is. What is
// expected may be the next step.
bool HasNextStep(const std::string& error) {
  return error.ends_with(")\n") || error.ends_with("--help`.\n") ||
         error.find("recipe") != error.npos || error.find("(name the file") != error.npos ||
         error.find("trust-recipe-paths") != error.npos || error.find("or --ids") != error.npos ||
         error.find("omits other lines)") != error.npos ||
         error.find("a token id below") != error.npos ||
         error.ends_with("No such file or directory\n");
}

struct Counts {
  size_t commands = 0, conversions = 0, refusals = 0, steps = 0, outside = 0;
};

// Runs the commands of a transcript in a copy of the folder and compares their output.
// KINGLET_UPDATE_TRANSCRIPT names a folder that gets the present transcripts.
Counts Replay(const std::string& name) {
  const CommandFolder folder;
  std::filesystem::copy(kForms, folder.Path("."), std::filesystem::copy_options::recursive);
  std::ifstream expected(kForms + "/" + name);
  EXPECT_TRUE(expected.good());
  std::ostringstream now, before;
  Counts counts;
  std::string settings;
  bool refused = false;
  for (std::string line; std::getline(expected, line);) {
    before << line << "\n";
    if (line.starts_with("#")) now << line << "\n";
    if (line.starts_with("# outside: ")) {
      counts.outside += refused ? 1 : 0;
      refused = false;
    }
    if (line.starts_with("$ CHECK=")) {
      settings = line.substr(2) + "; ";
      now << line << "\n";
      continue;
    }
    if (!line.starts_with("$ ")) continue;
    ++counts.commands;
    const Outcome outcome = folder.RunShell(settings + line.substr(2));
    now << line << "\n" << Shortened(outcome);
    counts.conversions += outcome.out.find("golden: ") != std::string::npos ? 1 : 0;
    counts.steps += refused && outcome.exit_status == 0 ? 1 : 0;
    refused = outcome.exit_status != 0;
    if (!refused) continue;
    ++counts.refusals;
    EXPECT_TRUE(outcome.IsRefusal()) << line << "\n" << outcome.out << outcome.error;
    EXPECT_TRUE(HasNextStep(outcome.error)) << line << "\n" << outcome.error;
  }
  EXPECT_EQ(now.str(), before.str());
  if (const char* update = std::getenv("KINGLET_UPDATE_TRANSCRIPT")) {
    std::ofstream(std::string(update) + "/" + name) << now.str();
  }
  return counts;
}

TEST(CheckpointForms, Transcript) {
  const Counts counts = Replay("transcript.txt");
  EXPECT_GE(counts.conversions, 20u);
  EXPECT_GE(counts.refusals, 10u);
  EXPECT_GT(counts.commands, counts.conversions + counts.refusals);
}

// Each refusal is followed by its next step, which works, or by a line that tells who takes it
// outside of kinglet.
TEST(CheckpointForms, NextSteps) {
  const Counts counts = Replay("next_steps.txt");
  EXPECT_GE(counts.steps, 48u);
  EXPECT_EQ(counts.refusals, counts.steps + counts.outside);
}

}  // namespace
}  // namespace kinglet::checkpoint_forms_test
