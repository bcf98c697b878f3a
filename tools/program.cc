#include "tools/program.h"

#include "kernels/backend.h"

namespace kinglet {
namespace {

std::string VersionText() {
  std::string text = "kinglet " KINGLET_VERSION "\nbackends:";
  for (const Backend& backend : Backends()) text += " " + std::string(backend.name);
  text += "\n";
  const auto add_needs = [&](const char* kind, const Backend& backend) {
    if (!backend.needs) return;
    const Result<std::string> found = backend.needs();
    text += std::string(kind) + ": " + std::string(backend.name) + " (" +
            (found.ok() ? *found : "not available: " + found.status().message()) + ")\n";
  };
  for (const Backend& backend : Backends()) add_needs("library", backend);
  for (const Backend& backend : DeviceBackends()) add_needs("device", backend);
  return text;
}

}  // namespace

Program::Program() : arguments("Convert, run and inspect compressed language models.", "kinglet") {
  arguments.RequireSubcommand();
  arguments.AddVersion(VersionText);
  arguments.Footer(
      "Example:\n  kinglet score model.kgl --text test.txt\n\n"
      "`kinglet help SUBCOMMAND` lists the options of a subcommand.");
  commands = {AddConvert(arguments),   AddScore(arguments),       AddPredict(arguments),
              AddGenerate(arguments),  AddCount(arguments),       AddBench(arguments),
              AddEmbed(arguments),     AddInspect(arguments),     AddVerify(arguments),
              AddTranslate(arguments), AddFill(arguments),        AddTokenize(arguments),
              AddRescore(arguments),   AddFilter(arguments),      AddTuneCache(arguments),
              AddReport(arguments),    AddSensitivity(arguments), AddPlan(arguments),
              AddDiff(arguments),      AddCompress(arguments),    AddDecompress(arguments),
              AddType(arguments)};
}

std::vector<std::string> CommandNames(const Program& program) {
  std::vector<std::string> names;
  for (const Command& command : program.commands) names.push_back(command.arguments.name());
  return names;
}

}  // namespace kinglet
