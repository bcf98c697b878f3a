// The subcommands. Each Add function declares its options below `program`, keeps their values and
// returns what runs it.
#ifndef KINGLET_TOOLS_COMMANDS_H_
#define KINGLET_TOOLS_COMMANDS_H_

#include <functional>

#include "kinglet/status.h"
#include "tools/arguments.h"
#include "tools/console.h"

namespace kinglet {

struct Command {
  Arguments arguments;
  // Relations between options that the parser cannot express; a failure is a usage error.
  std::function<Status()> check;
  // Results go to the console; a failure is the command's.
  std::function<Status(Console&)> run;
};

Command AddConvert(Arguments& program);
Command AddScore(Arguments& program);
Command AddPredict(Arguments& program);
Command AddCount(Arguments& program);
Command AddBench(Arguments& program);
Command AddEmbed(Arguments& program);
Command AddInspect(Arguments& program);
Command AddVerify(Arguments& program);
Command AddTranslate(Arguments& program);
Command AddTuneCache(Arguments& program);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_COMMANDS_H_
