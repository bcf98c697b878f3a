// Manual pages, as `man` reads them, of what `--help` says.
#ifndef KINGLET_TOOLS_PAGES_MANUAL_H_
#define KINGLET_TOOLS_PAGES_MANUAL_H_

#include <string>
#include <vector>

#include "tools/arguments.h"

namespace kinglet {

// kinglet.1: the program, and what its subcommands are for.
std::string ProgramManual(const ArgumentFacts& program, const std::vector<ArgumentFacts>& commands,
                          const std::string& version);

// kinglet-X.1: one subcommand.
std::string CommandManual(const ArgumentFacts& command, const std::string& program,
                          const std::string& version);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PAGES_MANUAL_H_
