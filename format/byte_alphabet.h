// The alphabet of bytes of GPT-2's tokenizer (Radford et al. 2019): each byte is written as one
// character that is printed. Bytes that are such characters in Latin-1 stand for themselves; the
// others are numbered from U+0100 on, so a space is U+0120 and a newline U+010A.
#ifndef KINGLET_FORMAT_BYTE_ALPHABET_H_
#define KINGLET_FORMAT_BYTE_ALPHABET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/utf8.h"

namespace kinglet {

// The code point of each byte.
inline const std::array<uint16_t, 256>& ByteAlphabet() {
  static const std::array<uint16_t, 256> alphabet = [] {
    std::array<uint16_t, 256> codes{};
    uint16_t next = 256;
    for (size_t byte = 0; byte < codes.size(); ++byte) {
      const bool printed = (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      codes[byte] = printed ? static_cast<uint16_t>(byte) : next++;
    }
    return codes;
  }();
  return alphabet;
}

// The bytes that a text of the alphabet stands for; nullopt for a text with other characters.
inline std::optional<std::string> BytesOfAlphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) return std::nullopt;
    const uint32_t code = CodePointOf(text.substr(0, length));
    text.remove_prefix(length);
    const auto& alphabet = ByteAlphabet();
    size_t byte = code < alphabet.size() && alphabet[code] == code ? code : 0;
    while (byte < alphabet.size() && alphabet[byte] != code) ++byte;
    if (byte == alphabet.size()) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BYTE_ALPHABET_H_
