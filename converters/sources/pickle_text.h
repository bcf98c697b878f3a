// The textual values of pickle protocol 0: numbers, quoted byte strings and escaped Unicode.
#ifndef KINGLET_CONVERTERS_SOURCES_PICKLE_TEXT_H_
#define KINGLET_CONVERTERS_SOURCES_PICKLE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kinglet {

// Each returns nothing when the text is not of its form.
std::optional<int64_t> ParsePickleInteger(std::string_view text);
std::optional<double> ParsePickleFloat(std::string_view text);
// A Python string literal's body between equal quotes, with \\, \', \", \n, \r, \t and \xNN.
std::optional<std::string> ParseQuotedString(std::string_view text);
// Python's raw-unicode-escape: Latin-1 bytes, \uXXXX and \UXXXXXXXX; gives UTF-8.
std::optional<std::string> ParseUnicodeEscapes(std::string_view text);

// Appends `code_point` as UTF-8; false when it is no Unicode scalar value.
bool AppendUtf8(uint32_t code_point, std::string* out);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_PICKLE_TEXT_H_
