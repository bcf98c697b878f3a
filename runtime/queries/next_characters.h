// The query for the character that follows a prefix of the next token.
#ifndef KINGLET_RUNTIME_QUERIES_NEXT_CHARACTERS_H_
#define KINGLET_RUNTIME_QUERIES_NEXT_CHARACTERS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kinglet {

class Vocabulary;

// One character and the probability of all tokens that continue with it.
struct NextCharacter {
  // A code point in UTF-8, or one byte that begins no code point; empty where the token ends.
  std::string text;
  double probability = 0;
};

// The characters that follow the prefix in the tokens of the vocabulary, in byte order, without
// their probabilities; and for each token that begins with the prefix, by id, the index of the
// character that follows there.
struct PrefixParts {
  std::vector<NextCharacter> characters;
  std::vector<uint32_t> part_of;  // an element for each token of the vocabulary
};
// Splits the tokens that begin with the prefix by the next character. Throws std::bad_alloc.
PrefixParts SplitByNextCharacter(const Vocabulary& vocabulary, std::string_view prefix);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_NEXT_CHARACTERS_H_
