#include "converters/checkpoints/quoted.h"

namespace kinglet {

std::string HexByte(std::byte byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto value = static_cast<unsigned>(byte);
  return {kDigits[value >> 4], kDigits[value & 15]};
}

std::string QuotedName(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += "\\x" + HexByte(std::byte{byte});
    } else {
      out += c;
    }
  }
  out += text.size() > kLongest ? "'.." : "'";
  return out;
}

}  // namespace kinglet
