// The kinglet command: parses the command line, runs one subcommand, and turns its Status into
// an exit status. 0: success; 1: failure; 2: wrong command line; 130 (128 + SIGINT): Ctrl-C.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/float_environment.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/nearest_word.h"
#include "tools/program.h"
#include "tools/system.h"

namespace kinglet {
namespace {

constexpr int kDone = 0, kFailed = 1, kUsage = 2, kInterrupted = 128 + SIGINT;

Status UsageRefusal(const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "command", expected, found);
}

// Refuses an unknown subcommand and names the nearest one; the parser would only call the word
// unexpected.
Status CheckSubcommand(const std::string& word, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return Status();
  const std::string near = NearestWord(word, known);
  return UsageRefusal("a subcommand", "\"" + word + "\". " +
                                          (near.empty() ? "Run `kinglet help` for the list."
                                                        : "Did you mean " + near + "?"));
}

// The arguments with `help`, `help X` and nothing written as `--help`, `X --help` and `--help`.
Result<std::vector<std::string>> WithoutHelpCommand(std::vector<std::string> arguments,
                                                    const std::vector<std::string>& known) {
  if (arguments.empty()) return std::vector<std::string>{"--help"};
  if (arguments[0] == "help") {
    if (arguments.size() > 2) {
      return UsageRefusal("`kinglet help SUBCOMMAND`",
                          "\"" + arguments[2] + "\" after it. Ask for one subcommand.");
    }
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  if (!arguments[0].starts_with("-")) {
    KINGLET_RETURN_IF_ERROR(CheckSubcommand(arguments[0], known));
  }
  return arguments;
}

int Fail(const Status& status, int exit_status) {
  PrintError(status);
  return exit_status;
}

// The exit status after writing the output. If the reader of a pipe has left, the command fails
// without a message.
int Written(Output& out, const Status& ran) {
  const Status flushed = out.Flush();
  if (Interrupted()) {
    EndByInterrupt();
    return kInterrupted;
  }
  if (out.reader_left()) return kFailed;
  if (!ran.ok()) return Fail(ran, kFailed);
  return flushed.ok() ? kDone : Fail(flushed, kFailed);
}

// Runs the parsed subcommand. Results so far are written even if the command fails.
int RunCommand(const Command& command, Console& console) {
  if (const Status checked = command.check(); !checked.ok()) {
    const std::string help = ". See `kinglet " + command.arguments.name() + " --help`.";
    return Fail(Status(checked.code(), checked.message() + help), kUsage);
  }
  return Written(console.out, command.run(console));
}

[[gnu::noinline]] int Main(const std::vector<std::string>& given) {
  Program program;
  const auto arguments = WithoutHelpCommand(given, CommandNames(program));
  if (!arguments.ok()) return Fail(arguments.status(), kUsage);
  std::vector<const char*> words = {"kinglet"};
  for (const std::string& word : *arguments) words.push_back(word.c_str());

  Output out(1);
  Console console = DescribeConsole(out);
  if (console.columns > 0) program.arguments.FoldHelp(std::clamp<size_t>(console.columns, 50, 100));
  const Result<std::optional<std::string>> text =
      program.arguments.Parse(static_cast<int>(words.size()), words.data());
  if (!text.ok()) return Fail(text.status(), kUsage);
  if (text->has_value()) {
    // Without arguments the help is a message about a wrong command line.
    if (given.empty()) return std::fputs((*text)->c_str(), stderr), kUsage;
    out.Write(**text);
    return Written(out, Status());
  }
  for (const Command& command : program.commands) {
    if (command.arguments.parsed()) return RunCommand(command, console);
  }
  return Fail(Status(KINGLET_INTERNAL, "command: no subcommand was parsed"), kFailed);
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  const kinglet::FloatEnvironment environment;  // libraries' constructors may have changed it
  kinglet::PrepareStandardStreams();
  kinglet::CleanUpAtSignals();
  try {
    try {
      return kinglet::Main(kinglet::ArgumentWords(argc, argv));
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      kinglet::PrintError(kinglet::Status(KINGLET_INTERNAL, error.what()));
    }
  } catch (const std::bad_alloc&) {
    // Memory for the message may be missing too.
    constexpr std::string_view kLine =
        "kinglet: memory: command: expected enough memory, found none left\n";
    kinglet::WriteSome(2, kLine);
  }
  return 1;
}
