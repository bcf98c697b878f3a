// Shell completions after "kinglet", from the facts of `--help`: subcommands, options, values of an
// option that has a list of them, and files.
#ifndef KINGLET_TOOLS_PAGES_COMPLETIONS_H_
#define KINGLET_TOOLS_PAGES_COMPLETIONS_H_

#include <string>
#include <vector>

#include "tools/arguments.h"

namespace kinglet {

std::string BashCompletions(const ArgumentFacts& program,
                            const std::vector<ArgumentFacts>& commands);
std::string ZshCompletions(const ArgumentFacts& program,
                           const std::vector<ArgumentFacts>& commands);
std::string FishCompletions(const ArgumentFacts& program,
                            const std::vector<ArgumentFacts>& commands);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PAGES_COMPLETIONS_H_
