// Pieces of the texts of refusals.
#ifndef KINGLET_FORMAT_MESSAGE_TEXT_H_
#define KINGLET_FORMAT_MESSAGE_TEXT_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace kinglet {

// "layer 3".
inline std::string Numbered(std::string_view what, uint64_t number) {
  std::string text(what);
  text += ' ';
  text += std::to_string(number);
  return text;
}

// "12 bytes".
inline std::string BytesText(uint64_t bytes) {
  std::string text = std::to_string(bytes);
  text += " bytes";
  return text;
}

// "1.5e-05".
inline std::string NumberText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", number);
  return text;
}

// The first 64 bytes of unchecked text, as one printable line.
inline std::string Printable(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 64)) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

inline std::string Quoted(std::string_view text) {
  std::string out = "\"";
  out += Printable(text);
  out += '"';
  return out;
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_MESSAGE_TEXT_H_
