// The texts that a masked model reads: lines of ids, or text.
#ifndef KINGLET_TOOLS_MASKED_LINES_H_
#define KINGLET_TOOLS_MASKED_LINES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "kinglet/status.h"
#include "runtime/masked_text.h"
#include "tools/arguments.h"

namespace kinglet {

struct MaskedInput {
  std::string text;           // path; "-" or empty, without ids: standard input
  std::string ids, segments;  // paths
};

// Declares --text, --ids and --segments. `input` outlives the parsing.
void AddMaskedInput(Arguments& arguments, MaskedInput& input);
// Refuses files that exclude each other.
Status CheckMaskedInput(const MaskedInput& input, const std::string& command);

// `number` is from 1. A line without tokens is a text without tokens.
using MaskedLineSink = std::function<Status(uint64_t number, const MaskedText& text)>;

// Calls `sink` with every line. Errors: KINGLET_UNSUPPORTED for text and a model without a
// tokenizer; KINGLET_INVALID_ARGUMENT for files of ids and segments of other lengths; those of
// reading, tokenizing and `sink`, with the number of the line.
Status ForEachMaskedLine(const MaskedInput& input, const Model& model, const MaskedLineSink& sink);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_MASKED_LINES_H_
