// The text that a token adds.
#ifndef KINGLET_RUNTIME_TEXT_SPELLING_H_
#define KINGLET_RUNTIME_TEXT_SPELLING_H_

#include <string>
#include <string_view>

#include "format/utf8.h"

namespace kinglet {

struct Spelling {
  std::string text;           // any bytes, also half a character; "" if the token spells nothing
  bool joins_before = false;  // no space between this token and the token before
  bool joins_after = false;   // no space between this token and the next one
};

// Takes complete characters from the front of `bytes`; U+FFFD replaces a byte that belongs to none.
// Keeps the beginning of a character that later bytes may complete, unless `all` is set.
inline std::string TakeCharacters(std::string& bytes, bool all) {
  std::string out;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t length = CharacterLength(rest);
    if (length == 0 && !all) {
      // At most three bytes are kept.
      static constexpr size_t kLongestCharacter = 4;
      if (rest.size() < kLongestCharacter) break;
    }
    out += length == 0 ? kReplacementCharacter : rest.substr(0, length);
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  bytes = std::string(rest);
  return out;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_SPELLING_H_
