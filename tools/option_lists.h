// Options that are lists of values: "3,4,5".
#ifndef KINGLET_TOOLS_OPTION_LISTS_H_
#define KINGLET_TOOLS_OPTION_LISTS_H_

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The parts between separators, one more than there are separators.
inline std::vector<std::string> SplitAt(char separator, const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// Reads a number that is the entire text. Returns false for any other text.
template <class Number>
bool ReadWhole(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

inline Status RefuseList(const char* option, const std::string& expected,
                         const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", option, expected, "\"" + found + "\"");
}

}  // namespace kinglet

#endif  // KINGLET_TOOLS_OPTION_LISTS_H_
