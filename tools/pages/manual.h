// Manual pages, as `man` reads them, from the facts of `--help`.
#ifndef KINGLET_TOOLS_PAGES_MANUAL_H_
#define KINGLET_TOOLS_PAGES_MANUAL_H_

#include <string>
#include <vector>

#include "tools/arguments.h"

namespace kinglet {

// kinglet.1: the program and the purposes of its subcommands.
std::string ProgramManual(const ArgumentFacts& program, const std::vector<ArgumentFacts>& commands,
                          const std::string& version);

// kinglet-X.1: one subcommand.
std::string CommandManual(const ArgumentFacts& command, const std::string& program,
                          const std::string& version);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PAGES_MANUAL_H_
