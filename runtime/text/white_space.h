// White space as Python's str.split() has it, by which frameworks split their texts.
#ifndef KINGLET_RUNTIME_TEXT_WHITE_SPACE_H_
#define KINGLET_RUNTIME_TEXT_WHITE_SPACE_H_

#include <cstddef>
#include <string_view>

namespace kinglet {

inline constexpr size_t kLongestSpace = 3;  // bytes

// Whether a byte is ASCII white space, vertical tabs, form feeds and the separators 0x1c to 0x1f
// included.
inline bool IsAsciiSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

// The bytes of the white-space character with which `text` begins; 0 if it begins with another
// character. White space beyond ASCII: U+0085, no-break spaces, U+1680, U+2000 to U+200A, U+2028,
// U+2029, U+202F, U+205F and U+3000.
inline size_t SpaceLength(std::string_view text) {
  if (text.empty()) return 0;
  if (static_cast<unsigned char>(text[0]) < 0x80) return IsAsciiSpace(text[0]) ? 1 : 0;
  if (text.starts_with("\xC2\x85") || text.starts_with("\xC2\xA0")) return 2;
  if (text.size() < kLongestSpace) return 0;
  if (text.starts_with("\xE2\x80")) {
    const auto last = static_cast<unsigned char>(text[2]);
    const bool space =
        (last >= 0x80 && last <= 0x8A) || last == 0xA8 || last == 0xA9 || last == 0xAF;
    return space ? kLongestSpace : 0;
  }
  const bool space = text.starts_with("\xE1\x9A\x80") || text.starts_with("\xE2\x81\x9F") ||
                     text.starts_with("\xE3\x80\x80");
  return space ? kLongestSpace : 0;
}

// The bytes of the white-space character with which `text` ends; 0 if it ends with another one.
inline size_t LastSpaceLength(std::string_view text) {
  for (size_t length = 1; length <= kLongestSpace && length <= text.size(); ++length) {
    if (SpaceLength(text.substr(text.size() - length)) == length) return length;
  }
  return 0;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_WHITE_SPACE_H_
