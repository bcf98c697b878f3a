// Characters of UTF-8 text, well formed by Unicode's rules: no overlong form, no surrogate, at most
// U+10FFFF.
#ifndef KINGLET_FORMAT_UTF8_H_
#define KINGLET_FORMAT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kinglet {

// Whether the byte is one of a character that began before.
inline bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// The length in bytes of the character that `text` starts with; 0 if it starts with none.
inline size_t CharacterLength(std::string_view text) {
  const auto byte = [text](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto continues = [&](size_t i) { return i < text.size() && ContinuesCharacter(text[i]); };
  if (text.empty()) return 0;
  const uint32_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const uint32_t low = first == 0xE0 ? 0xA0 : 0x80;   // no overlong form
    const uint32_t high = first == 0xED ? 0x9F : 0xBF;  // no surrogate
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const uint32_t low = first == 0xF0 ? 0x90 : 0x80;
    const uint32_t high = first == 0xF4 ? 0x8F : 0xBF;  // at most U+10FFFF
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// Like CharacterLength, but a byte that starts no character counts as a character of one byte.
inline size_t UnitLength(std::string_view text) {
  const size_t length = CharacterLength(text);
  return length == 0 ? 1 : length;
}

inline bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// REQUIRES: `character` is one well-formed character.
inline uint32_t CodePointOf(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return code;
}

// REQUIRES: `code` is a code point, not a surrogate.
inline void AppendCodePoint(uint32_t code, std::string& text) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0U | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0U | code >> 12);
    } else {
      put(0xF0U | code >> 18);
      put(0x80U | (code >> 12 & 0x3FU));
    }
    put(0x80U | (code >> 6 & 0x3FU));
  }
  put(0x80U | (code & 0x3FU));
}

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace kinglet

#endif  // KINGLET_FORMAT_UTF8_H_
