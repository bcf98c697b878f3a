// The strings that pickle protocol 0 writes as text: quoted byte strings and escaped Unicode.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_TEXT_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kinglet {

// A Python string literal in single or double quotes, with the escapes \\, \', \", \n, \r, \t and
// \xNN resolved. Returns nullopt if the text is not a literal.
std::optional<std::string> ParseQuotedString(std::string_view text);
// Python's raw-unicode-escape (Latin-1 bytes, \uXXXX and \UXXXXXXXX) as UTF-8. Returns nullopt if
// an escape is broken.
std::optional<std::string> ParseUnicodeEscapes(std::string_view text);

// Appends `code_point` as UTF-8. Returns false and appends nothing for a surrogate or a number
// above 0x10ffff.
bool AppendUtf8(uint32_t code_point, std::string* out);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_TEXT_H_
