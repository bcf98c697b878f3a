// Behaviour that all subcommands share: exit statuses, usage errors, streams.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/tools/run_command.h"
#include "tools/program.h"

namespace kinglet::main_test {
namespace {

class MainTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet());
    folder_.Write("ids.txt", "0 1 2 3 4 5 6\n");
  }
  CommandFolder folder_;
};

TEST_F(MainTest, HelpAndVersionSucceed) {
  EXPECT_EQ(folder_.Run("--version").exit_status, 0);
  EXPECT_EQ(folder_.Run("--version").out.find("kinglet "), 0u);
  EXPECT_NE(folder_.Run("--version").out.find("ref64"), std::string::npos);
  const Outcome help = folder_.Run("--help");
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_EQ(help.error, "");
  for (const std::string name : {"convert", "score", "predict", "count", "bench", "embed",
                                 "inspect", "verify", "tokenize", "tune-cache", "generate"}) {
    EXPECT_NE(help.out.find(name), std::string::npos);
    const Outcome own = folder_.Run(name + " --help");
    EXPECT_EQ(own.exit_status, 0);
    EXPECT_NE(own.out.find("Example:\n  "), std::string::npos) << own.out;
  }
}

// Without arguments the help is a message.
TEST_F(MainTest, NoArgumentsPrintTheHelp) {
  const Outcome alone = folder_.Run("");
  EXPECT_EQ(alone.exit_status, 2);
  EXPECT_EQ(alone.out, "");
  EXPECT_EQ(alone.error, folder_.Run("--help").out);
}

TEST_F(MainTest, HelpFitsATerminal) {
  for (const Command& command : Program().commands) {
    const std::string name = command.arguments.name();
    std::istringstream help(folder_.Run("help " + name).out);
    for (std::string line; std::getline(help, line);) {
      // Names and placeholders of options, the usage line and examples stay whole.
      const bool is_whole = line.starts_with("  -") || line.starts_with("Usage") ||
                            line.starts_with("  kinglet") || line.starts_with("  printf");
      const bool is_one_word = line.find(' ', line.find_first_not_of(' ')) == line.npos;
      EXPECT_TRUE(is_whole || is_one_word || line.size() <= 80) << name << ": " << line;
    }
  }
}

TEST_F(MainTest, WrongCommandLinesAreUsageErrors) {
  for (const char* arguments : {"unheard",
                                "''",
                                "count",
                                "count m.kgl --rules hearsay",
                                "count m.kgl --bin-counts 1,2,",
                                "count m.kgl --bin-counts -1,2,3",
                                "count m.kgl --bin-counts 99999999999999999999,2,3",
                                "count m.kgl --bin-counts 1,2,3 --ids ids.txt",
                                "score",
                                "score m.kgl",
                                "score m.kgl --ids",
                                "score m.kgl --ids ids.txt --text ids.txt",
                                "score m.kgl --ids ids.txt extra",
                                "score m.kgl --ids ids.txt --nonsense",
                                "score m.kgl --ids ids.txt --lanes 0",
                                "score m.kgl --ids ids.txt --lanes -1",
                                "score m.kgl --ids ids.txt --lanes many",
                                "score m.kgl --ids ids.txt --threads 0",
                                "score m.kgl --ids ids.txt --block 0",
                                "score m.kgl --ids ids.txt --context 3",
                                "score m.kgl --ids ids.txt --backend abacus",
                                "score m.kgl --ids ids.txt --empty-cache sometimes",
                                "predict m.kgl --top 0",
                                "predict m.kgl --top -1",
                                "generate",
                                "generate m.kgl --tokens 0",
                                "generate m.kgl --streams 0",
                                "generate m.kgl --seed -1",
                                "generate m.kgl --seed 18446744073709551616",
                                "generate m.kgl --temperature -1",
                                "generate m.kgl --temperature nan",
                                "generate m.kgl --temperature inf",
                                "generate m.kgl --top-k -1",
                                "generate m.kgl --top-p 0",
                                "generate m.kgl --top-p -0.5",
                                "generate m.kgl --top-p 1.0001",
                                "generate m.kgl --top-p nan",
                                "generate m.kgl --stop ''",
                                "generate m.kgl --prompt the --ids ids.txt",
                                "inspect",
                                "inspect m.kgl m.kgl",
                                "verify",
                                "tune-cache m.kgl --text ids.txt",
                                "tune-cache m.kgl -o x.kgl",
                                "tune-cache m.kgl --text ids.txt --ids ids.txt -o x.kgl",
                                "tune-cache m.kgl --ids ids.txt -o x.kgl --cache 0",
                                "tune-cache m.kgl --ids ids.txt -o x.kgl --cache 1048577",
                                "tune-cache m.kgl --ids ids.txt -o x.kgl --threads 0",
                                "convert m.kgl",
                                "convert -o x.kgl",
                                "convert m.kgl -o x.kgl --bits 1",
                                "convert m.kgl -o x.kgl --bits 17",
                                "convert m.kgl -o x.kgl --golden g.tsv",
                                "convert m.kgl -o x.kgl --prune 2"}) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << "\n" << outcome.error;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error << outcome.out;
    EXPECT_EQ(outcome.error.find("kinglet: usage: "), 0u) << outcome.error;
  }
}

TEST_F(MainTest, HelpOfASubcommand) {
  EXPECT_EQ(folder_.Run("help").out, folder_.Run("--help").out);
  EXPECT_EQ(folder_.Run("help score").out, folder_.Run("score --help").out);
  EXPECT_EQ(folder_.Run("help score").exit_status, 0);
}

// Every usage error ends with a sentence that names the next step.
TEST_F(MainTest, UsageErrorsSayTheNextStep) {
  for (const std::string arguments :
       {"", "scroe", "help scroe", "score", "score m.kgl", "score m.kgl --txt a", "score m.kgl a",
        "score m.kgl --ids - --text -", "verify -", "predict m.kgl --top 1.5",
        "convert a -o b --prune 0,5", "count m.kgl --bin-counts 1,2,"}) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments;
    EXPECT_TRUE(outcome.error.ends_with(".\n") || outcome.error.ends_with("?\n")) << outcome.error;
  }
}

TEST_F(MainTest, DashIsStandardInput) {
  const std::string expected = folder_.Run("score m.kgl --ids ids.txt --json").out;
  EXPECT_EQ(folder_.Run("score m.kgl --ids - --json", "0 1 2 3 4 5 6\n").out, expected);
  EXPECT_EQ(folder_.RunShell("cat ids.txt | kinglet score m.kgl --ids - --json").out, expected);
  EXPECT_EQ(folder_.Run("predict m.kgl --ids - --json", "0 1 2 3 4 5 6\n").out,
            folder_.Run("predict m.kgl --ids ids.txt --json").out);
  const Outcome wrong = folder_.Run("score m.kgl --ids -", "0 x\n");
  EXPECT_EQ(wrong.error.find("kinglet: standard input: byte 2: "), 0u) << wrong.error;
}

TEST_F(MainTest, FilesThatAreNoModelsAreNamed) {
  folder_.Write("empty", "");
  for (const std::string command :
       {"score %s --ids ids.txt", "predict %s", "count %s", "verify %s"}) {
    for (const std::string name : {"missing.kgl", ".", "empty", "ids.txt", "/dev/null"}) {
      std::string arguments = command;
      arguments.replace(arguments.find("%s"), 2, name);
      const Outcome outcome = folder_.Run(arguments);
      EXPECT_EQ(outcome.exit_status, 1) << arguments;
      EXPECT_TRUE(outcome.IsRefusal()) << arguments << "\n" << outcome.error << outcome.out;
      EXPECT_EQ(outcome.error.find("kinglet: " + name + ": "), 0u) << outcome.error;
    }
  }
}

TEST_F(MainTest, AMessageIsOneLineWhateverTheNames) {
  const Outcome outcome = folder_.Run("inspect \"$(printf 'a\\nb\\033[31m')\"");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
  EXPECT_EQ(outcome.error.find('\x1b'), std::string::npos);
}

TEST_F(MainTest, ABackendWithoutItsDeviceFailsInOneLine) {
  const std::string version = folder_.Run("--version").out;
  const size_t reason = version.find("cuda (not available: ");
  if (reason == std::string::npos) GTEST_SKIP() << version;
  const Outcome outcome = folder_.Run("score m.kgl --ids ids.txt --backend cuda");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
  // The message repeats the reason.
  const size_t begin = version.find(": ", reason) + 2;
  const std::string why = version.substr(begin, version.find(")\n", begin) - begin);
  EXPECT_EQ(outcome.error, "kinglet: " + why + "\n");
}

TEST_F(MainTest, ResultsThatCannotBeWrittenAreAFailure) {
  for (const std::string arguments :
       {"--help", "--version", "score --help", "score m.kgl --ids ids.txt",
        "score m.kgl --ids ids.txt --json", "predict m.kgl --ids ids.txt", "inspect m.kgl --json",
        "verify m.kgl", "count m.kgl --ids ids.txt"}) {
    for (const std::string sink : {" > /dev/full", " >&-"}) {
      const Outcome outcome = folder_.Run(arguments + sink);
      EXPECT_EQ(outcome.exit_status, 1) << arguments << sink;
      EXPECT_TRUE(outcome.IsRefusal()) << arguments << sink << "\n" << outcome.error;
    }
  }
}

// A closed standard output must not hand its number to the file that is opened next.
TEST_F(MainTest, AClosedOutputHarmsNoFile) {
  const std::string before = folder_.Read("m.kgl");
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --json >&-").exit_status, 1);
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --json >&- 2>&- <&-").exit_status, 1);
  EXPECT_EQ(folder_.Read("m.kgl"), before);
}

TEST_F(MainTest, AReaderThatLeavesIsAFailureInSilence) {
  std::string ids;
  for (int i = 0; i < 5000; ++i) ids += std::to_string(i % 23) + " ";  // more than a pipe holds
  folder_.Write("many.txt", ids);
  const Outcome outcome = folder_.RunShell(
      "{ kinglet score m.kgl --ids many.txt --json --hex; echo $? > status; } | head -c 1");
  EXPECT_EQ(outcome.out, "{");
  EXPECT_EQ(folder_.Read("status"), "1\n");
  EXPECT_EQ(outcome.error, "");
}

TEST_F(MainTest, NoProgressUnlessOnATerminal) {
  folder_.Write("known.txt", "0 1 3 4 5 6\n");
  EXPECT_EQ(folder_.Run("score m.kgl --ids known.txt").error, "");
  EXPECT_EQ(folder_.Run("predict m.kgl", "the w3\n").error, "");
}

}  // namespace
}  // namespace kinglet::main_test
