// The subcommands of kinglet. Each Add function adds its subcommand and options to `program` and
// returns functions that check the option values and run it.
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
  // Writes results to the console. A failure becomes exit status 1.
  std::function<Status(Console&)> run;
};

Command AddConvert(Arguments& program);
Command AddScore(Arguments& program);
Command AddPredict(Arguments& program);
Command AddGenerate(Arguments& program);
Command AddCount(Arguments& program);
Command AddBench(Arguments& program);
Command AddEmbed(Arguments& program);
Command AddInspect(Arguments& program);
Command AddVerify(Arguments& program);
Command AddTranslate(Arguments& program);
Command AddFill(Arguments& program);
Command AddTokenize(Arguments& program);
Command AddFilter(Arguments& program);
Command AddTuneCache(Arguments& program);
Command AddRescore(Arguments& program);
Command AddReport(Arguments& program);
Command AddDiff(Arguments& program);
Command AddTable(Arguments& program);
Command AddSensitivity(Arguments& program);
Command AddPlan(Arguments& program);
Command AddFrontier(Arguments& program);
Command AddCompress(Arguments& program);
Command AddDecompress(Arguments& program);
Command AddType(Arguments& program);
Command AddNgram(Arguments& program);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_COMMANDS_H_
