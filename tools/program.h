// The command line of kinglet: every subcommand with its options.
#ifndef KINGLET_TOOLS_PROGRAM_H_
#define KINGLET_TOOLS_PROGRAM_H_

#include <string>
#include <vector>

#include "tools/arguments.h"
#include "tools/commands.h"

namespace kinglet {

struct Program {
  Program();

  ArgumentParser arguments;
  std::vector<Command> commands;
};

// The names of the subcommands, in the order of the help.
std::vector<std::string> CommandNames(const Program& program);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PROGRAM_H_
