// How the C interface writes the characters that follow a prefix.
#ifndef KINGLET_RUNTIME_C_API_NEXT_CHARACTERS_H_
#define KINGLET_RUNTIME_C_API_NEXT_CHARACTERS_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "format/utf8.h"
#include "kinglet/words.h"
#include "runtime/c_api/handles.h"
#include "runtime/queries/next_characters.h"

namespace kinglet {

// A character as the C interface numbers it.
inline uint32_t CodeOfNext(std::string_view character) {
  if (character.empty()) return KINGLET_NEXT_END;
  if (CharacterLength(character) == 0) {
    return KINGLET_NEXT_BYTE + static_cast<unsigned char>(character.front());
  }
  return CodePointOf(character);
}

inline Status WriteNextCharacters(const char* function, const std::vector<NextCharacter>& next,
                                  uint32_t* characters, double* probabilities, uint64_t capacity,
                                  uint32_t* count) {
  const auto pair = [](const NextCharacter& one) {
    return std::pair(CodeOfNext(one.text), one.probability);
  };
  return WritePairs(function, next, pair, characters, probabilities, capacity, count);
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_C_API_NEXT_CHARACTERS_H_
