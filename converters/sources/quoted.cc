#include "converters/sources/quoted.h"

#include <array>
#include <cstddef>

namespace kinglet {

std::string QuotedName(std::string_view text) {
  constexpr size_t kLongest = 80;
  constexpr std::array<char, 17> kHex = {"0123456789abcdef"};
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += text.size() > kLongest ? "'.." : "'";
  return out;
}

}  // namespace kinglet
