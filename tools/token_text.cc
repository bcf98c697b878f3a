#include "tools/token_text.h"

#include <cstdio>

#include "format/utf8.h"

namespace kinglet {
namespace {

bool IsControlCharacter(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

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

std::string DisplayToken(std::string_view word, std::string_view typed) {
  return typed.empty() ? DisplayText(word) : DisplayText(word) + ' ' + DisplayText(typed);
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
