#include "tools/program.h"

#include <initializer_list>
#include <utility>

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
  const auto add = [this](const char* group, std::initializer_list<Command> members) {
    for (Command command : members) {
      command.arguments.Group(group);
      commands.push_back(std::move(command));
    }
  };
#if defined(KINGLET_RUN_COMMAND)
  add("Run a model", {AddScore(arguments), AddPredict(arguments), AddGenerate(arguments)});
  add("Look at a model, and measure", {AddInspect(arguments), AddBench(arguments)});
#else
  add("Convert a checkpoint and look at the result",
      {AddConvert(arguments), AddInspect(arguments), AddVerify(arguments)});
  add("Run a model",
      {AddScore(arguments), AddPredict(arguments), AddGenerate(arguments), AddTokenize(arguments),
       AddEmbed(arguments), AddFill(arguments), AddTranslate(arguments)});
  add("Use a model: speech, corpora, archives, keyboards",
      {AddRescore(arguments), AddFilter(arguments), AddCompress(arguments),
       AddDecompress(arguments), AddType(arguments), AddNgram(arguments)});
  add("Measure", {AddCount(arguments), AddBench(arguments), AddReport(arguments),
                  AddDiff(arguments), AddTable(arguments)});
  add("Search and plan", {AddTuneCache(arguments), AddSensitivity(arguments), AddPlan(arguments),
                          AddFrontier(arguments)});
#endif
}

std::vector<std::string> CommandNames(const Program& program) {
  std::vector<std::string> names;
  for (const Command& command : program.commands) names.push_back(command.arguments.name());
  return names;
}

}  // namespace kinglet
