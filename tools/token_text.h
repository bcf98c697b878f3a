// Words of a vocabulary as text. Words are byte strings from a file: they may not be UTF-8 and may
// contain control sequences for a terminal.
#ifndef KINGLET_TOOLS_TOKEN_TEXT_H_
#define KINGLET_TOOLS_TOKEN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kinglet {

// For people: bytes that are not UTF-8, and of characters that a terminal obeys (controls, marks of
// the direction of writing), become \xNN. A word stays on its line and in its column.
std::string DisplayText(std::string_view text);

// DisplayText of each line and each column: newlines and tabs stay.
std::string TerminalText(std::string_view text);

// A word, followed by how an unknown one was typed: "<unk> Kinglet". `typed` may be empty.
std::string DisplayToken(std::string_view word, std::string_view typed);

// DisplayText in exactly `columns` characters: longer text is truncated and ends with "~", shorter
// text is padded with spaces. Every character counts as one column.
std::string FittedText(std::string_view text, size_t columns);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TOKEN_TEXT_H_
