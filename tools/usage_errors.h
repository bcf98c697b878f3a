// What was wrong with a command line, in the one-line form of errors, and the next step.
#ifndef KINGLET_TOOLS_USAGE_ERRORS_H_
#define KINGLET_TOOLS_USAGE_ERRORS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

// The text with which a check of a value refuses it: both halves of "expected X, found Y".
std::string RefusedValue(const std::string& expected, const std::string& found);

// "`score`" or the like: how the subcommand on the line, or the program itself, is called.
std::string CommandText(const CLI::App& program);

// The operand or option of the line that is "-" though it cannot be a pipe, or is the second one
// that is; nullptr if there is none.
const CLI::Option* MisplacedDash(const CLI::App& program);
Status DashRefusal(const CLI::App& program, const CLI::Option& option);

// The refusal of a command line that CLI11 gave up with `error`.
Status UsageRefusal(const CLI::App& program, const CLI::ParseError& error);

// Whether an option or operand is the path of a file or folder.
bool NamesFile(const CLI::Option& option);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_USAGE_ERRORS_H_
