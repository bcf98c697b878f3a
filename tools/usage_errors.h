// Refusals of a command line, in the one-line form of errors, with the next step.
#ifndef KINGLET_TOOLS_USAGE_ERRORS_H_
#define KINGLET_TOOLS_USAGE_ERRORS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

// The text with which the check of a value refuses it: both halves of "expected X, found Y".
std::string RefusedValue(const std::string& expected, const std::string& found);

// The name of the line's subcommand, or of the program itself: "`score`".
std::string CommandText(const CLI::App& program);

// The refusal of a name that is empty, or "-" though it cannot be a pipe or is the second pipe.
std::optional<Status> NameRefusal(const CLI::App& program);

// The refusal for an error of CLI11.
Status UsageRefusal(const CLI::App& program, const CLI::ParseError& error);

// Whether an option or operand is the path of a file or folder.
bool NamesFile(const CLI::Option& option);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_USAGE_ERRORS_H_
