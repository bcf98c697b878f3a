// Words of a vocabulary as text. They are byte strings from a file: they may not be UTF-8 and may
// hold control sequences for a terminal.
#ifndef KINGLET_TOOLS_TOKEN_TEXT_H_
#define KINGLET_TOOLS_TOKEN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kinglet {

// For people: control characters (also U+0080..U+009F) and bytes that are not UTF-8 become \xNN, so
// that a word stays on its line and cannot control the terminal.
std::string DisplayText(std::string_view text);

// A word, and behind it how an unknown one was typed: "<unk> Kinglet". `typed` may be empty.
std::string DisplayToken(std::string_view word, std::string_view typed);

// DisplayText in exactly `columns` characters: longer text is cut and ends with "~", shorter text
// is padded with spaces. Every character counts as one column.
std::string FittedText(std::string_view text, size_t columns);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TOKEN_TEXT_H_
