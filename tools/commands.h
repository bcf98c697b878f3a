// The subcommands. Each Add function declares its options below `app`, keeps their values and
// returns what runs it.
#ifndef KINGLET_TOOLS_COMMANDS_H_
#define KINGLET_TOOLS_COMMANDS_H_

#include <functional>

#include "kinglet/status.h"
#include "tools/console.h"

namespace CLI {
class App;
}

namespace kinglet {

struct Command {
  CLI::App* arguments;  // owned by the app it was added to
  // Relations between options that the parser cannot express; a failure is a usage error.
  std::function<Status()> check;
  // Results go to the console; a failure is the command's.
  std::function<Status(Console&)> run;
};

Command AddConvert(CLI::App& app);
Command AddScore(CLI::App& app);
Command AddPredict(CLI::App& app);
Command AddCount(CLI::App& app);
Command AddBench(CLI::App& app);
Command AddEmbed(CLI::App& app);
Command AddInspect(CLI::App& app);
Command AddVerify(CLI::App& app);
Command AddTranslate(CLI::App& app);
Command AddTuneCache(CLI::App& app);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_COMMANDS_H_
