#include "tools/token_text.h"

#include <cstdint>
#include <cstdio>

namespace kinglet {
namespace {

// Length in bytes of the well-formed character that `text` starts with, or 0. REQUIRES: not empty.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
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

bool IsControlCharacter(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string DisplayText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || IsControlCharacter(character)) {
      for (const char c : character) {
        char escape[8];
        std::snprintf(escape, sizeof(escape), "\\x%02X",
                      static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += escape;
      }
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string FittedText(std::string_view text, size_t columns) {
  const std::string shown = DisplayText(text);
  std::string_view rest = shown;
  std::string out;
  size_t used = 0;
  for (; !rest.empty() && used < columns; ++used) {
    const std::string_view character = rest.substr(0, CharacterLength(rest));
    const bool cut = used + 1 == columns && character.size() < rest.size();
    out += cut ? std::string_view("~") : character;
    rest.remove_prefix(character.size());
  }
  out.append(columns - used, ' ');
  return out;
}

}  // namespace kinglet
