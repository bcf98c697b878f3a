// The lines of standard input, and the parts of a line for `kinglet tokenize`.
#ifndef KINGLET_TOOLS_TEXT_LINES_H_
#define KINGLET_TOOLS_TEXT_LINES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Takes a line without its "
// ". `ended`: whether the line had one.
using LineSink = std::function<Status(std::string_view line, bool ended)>;

// Calls `sink` with each line of standard input as soon as the line arrives. A last line without "
// " counts, an empty one does not. A terminal that edits lines delivers the text typed so far when
// Ctrl-D is pressed inside a line: such a text is an unended line, and the next line follows.
Status ForEachInputLine(const LineSink& sink);

using Ids = std::vector<uint32_t>;
using Pieces = std::vector<std::string>;

// A JSON string, or {"hex":"c3a9"} for any bytes. Errors: KINGLET_INVALID_ARGUMENT.
Result<std::string> ParseTextLine(std::string_view line);

// Ids between spaces, {"ids":[..]} or {"pieces":[..]}. Errors: KINGLET_INVALID_ARGUMENT.
Result<std::variant<Ids, Pieces>> ParseTokensLine(std::string_view line);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TEXT_LINES_H_
