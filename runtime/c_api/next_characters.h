// How the C interface writes the characters that follow a prefix.
#ifndef KINGLET_RUNTIME_C_API_NEXT_CHARACTERS_H_
#define KINGLET_RUNTIME_C_API_NEXT_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "format/utf8.h"
#include "kinglet/words.h"
#include "runtime/c_api/guard.h"
#include "runtime/queries/next_characters.h"

namespace kinglet {

// A caller's arrays for characters and their probabilities; each may be NULL.
struct NextCharacterOutputs {
  uint32_t* characters;
  double* probabilities;
  uint64_t capacity;
  uint32_t* count;

  Status Write(const char* function, const std::vector<NextCharacter>& next) const {
    if (count != nullptr) *count = static_cast<uint32_t>(next.size());
    if (characters != nullptr || probabilities != nullptr) {
      KINGLET_RETURN_IF_ERROR(RequireCapacity(function, next.size(), capacity));
    }
    for (size_t i = 0; i < next.size(); ++i) {
      if (characters != nullptr) characters[i] = CodeOf(next[i].text);
      if (probabilities != nullptr) probabilities[i] = next[i].probability;
    }
    return Status();
  }

 private:
  static uint32_t CodeOf(std::string_view character) {
    if (character.empty()) return KINGLET_NEXT_END;
    if (CharacterLength(character) == 0) {
      return KINGLET_NEXT_BYTE + static_cast<unsigned char>(character.front());
    }
    return CodePointOf(character);
  }
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_C_API_NEXT_CHARACTERS_H_
