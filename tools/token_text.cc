#include "tools/token_text.h"

#include <algorithm>
#include <cstdio>

#include "format/utf8.h"
#include "kinglet/status.h"

namespace kinglet {
std::string DisplayText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || internal::ControlLength(character) > 0) {
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

std::string TerminalText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out += DisplayText(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
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
    const bool truncated = used + 1 == columns && character.size() < rest.size();
    out += truncated ? std::string_view("~") : character;
    rest.remove_prefix(character.size());
  }
  out.append(columns - used, ' ');
  return out;
}

}  // namespace kinglet
