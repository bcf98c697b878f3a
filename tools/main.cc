// The kinglet command: parses the command line, runs one subcommand, and turns its Status into
// an exit status. 0: success; 1: failure; 2: wrong command line.
#include <array>
#include <csignal>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "tools/arguments.h"
#include "tools/commands.h"
#include "tools/console.h"

namespace kinglet {
namespace {

constexpr int kDone = 0, kFailed = 1, kUsage = 2;

std::string VersionText() {
  std::string text = "kinglet " KINGLET_VERSION "\nbackends:";
  for (const Backend& backend : Backends()) text += " " + std::string(backend.name);
  text += "\n";
  for (const Backend& backend : DeviceBackends()) {
    const Result<std::string> device = backend.device_name();
    text += "device: " + std::string(backend.name) + " (" +
            (device.ok() ? *device : "not available: " + device.status().message()) + ")\n";
  }
  return text;
}

Status UsageRefusal(const std::string& where, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", where, expected, found);
}

// Refuses an unknown subcommand with the list of known ones; the parser would only call the word
// unexpected.
Status CheckSubcommand(int argc, const char* const* argv, const std::string& known) {
  if (argc < 2) return UsageRefusal("command", "one of " + known, "none (see kinglet --help)");
  const std::string first(argv[1]);
  if (first.starts_with("-")) return Status();
  for (size_t begin = 0; begin < known.size();) {
    const size_t end = std::min(known.find(", ", begin), known.size());
    if (known.compare(begin, end - begin, first) == 0) return Status();
    begin = end + 2;
  }
  return UsageRefusal("command", "one of " + known, "\"" + first + "\"");
}

int Fail(const Status& status, int exit_status) {
  PrintError(status);
  return exit_status;
}

// Runs the parsed subcommand. Results so far are written even if the command fails.
int RunCommand(const Command& command, Console& console) {
  if (const Status checked = command.check(); !checked.ok()) return Fail(checked, kUsage);
  const Status ran = command.run(console);
  const Status flushed = console.out.Flush();
  if (!ran.ok()) return Fail(ran, kFailed);
  return flushed.ok() ? kDone : Fail(flushed, kFailed);
}

int Main(int argc, const char* const* argv) {
  ArgumentParser program("Convert, run and inspect compressed language models.", "kinglet");
  program.RequireSubcommand();
  program.AddVersion(VersionText);
  program.Footer(
      "Example:\n  kinglet score model.kgl --text test.txt\n\n"
      "Run `kinglet SUBCOMMAND --help` for the options of a subcommand.");
  const std::array commands = {AddConvert(program),  AddScore(program),    AddPredict(program),
                               AddCount(program),    AddBench(program),    AddEmbed(program),
                               AddInspect(program),  AddVerify(program),   AddTranslate(program),
                               AddTokenize(program), AddTuneCache(program)};
  std::string names;
  for (const Command& command : commands) {
    names += (names.empty() ? "" : ", ") + command.arguments.name();
  }
  if (const Status known = CheckSubcommand(argc, argv, names); !known.ok()) {
    return Fail(known, kUsage);
  }

  const Result<std::optional<std::string>> text = program.Parse(argc, argv);
  if (!text.ok()) return Fail(text.status(), kUsage);
  Output out(1);
  if (text->has_value()) {
    out.Write(**text);
    const Status flushed = out.Flush();
    return flushed.ok() ? kDone : Fail(flushed, kFailed);
  }
  Console console = DescribeConsole(out);
  for (const Command& command : commands) {
    if (command.arguments.parsed()) return RunCommand(command, console);
  }
  return Fail(Status(KINGLET_INTERNAL, "command: no subcommand was parsed"), kFailed);
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  kinglet::ProtectStandardDescriptors();
  // Without the signal, a closed pipe is a write error like any other.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // likewise for the file-size limit
  try {
    return kinglet::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    kinglet::PrintError(kinglet::Status(
        KINGLET_OUT_OF_MEMORY, "memory: command: expected enough memory, found none left"));
  } catch (const std::exception& error) {
    kinglet::PrintError(kinglet::Status(KINGLET_INTERNAL, error.what()));
  }
  return 1;
}
