// The first mistakes of new users, and the command's messages. The lines are in
// tests/data/mistakes/transcript.txt.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/tools/run_command.h"

namespace kinglet::first_mistakes_test {
namespace {

const std::string kTranscript = KINGLET_TEST_DATA "/mistakes/transcript.txt";

void WriteFiles(const CommandFolder& folder) {
  folder.WriteModel("m.kgl", TinyMicronet());
  const std::string model = folder.Read("m.kgl");
  folder.Write("truncated.kgl", model.substr(0, model.size() / 2));
  std::string damaged = model;
  damaged[model.size() / 2] = static_cast<char>(damaged[model.size() / 2] ^ 1);
  folder.Write("damaged.kgl", damaged);
  folder.Write("ids.txt", "0 1 3 4 5 6 7\n");
  folder.Write("large.txt", "0 1 999\n");
  folder.Write("words.txt", "the war of the worlds\n");
  folder.Write("empty.txt", "");
  folder.Write("photo.jpg", "\xff\xd8\xff\xe0\x10JFIF\x01");
  std::string many;
  for (int i = 0; i < 5000; ++i) many += std::to_string(i % 23) + " ";  // more than a pipe holds
  folder.Write("many.txt", many);
}

// KINGLET_UPDATE_TRANSCRIPT names a file that gets the transcript as it is now.
TEST(FirstMistakes, Transcript) {
  const CommandFolder folder;
  WriteFiles(folder);
  std::ifstream expected(kTranscript);
  ASSERT_TRUE(expected.good());
  std::ostringstream now, before;
  int mistakes = 0;
  for (std::string line; std::getline(expected, line);) {
    before << line << "\n";
    if (line.starts_with("#")) now << line << "\n";
    if (!line.starts_with("$ ")) continue;
    ++mistakes;
    const Outcome outcome = folder.RunShell(line.substr(2));
    now << line << "\n" << outcome.out << outcome.error;
    if (outcome.exit_status != 0) now << "[" << outcome.exit_status << "]\n";
  }
  EXPECT_EQ(now.str(), before.str());
  EXPECT_GE(mistakes, 30);
  if (const char* update = std::getenv("KINGLET_UPDATE_TRANSCRIPT")) {
    std::ofstream(update) << now.str();
  }
}

}  // namespace
}  // namespace kinglet::first_mistakes_test
