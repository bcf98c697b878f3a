// Letters as people type them: lower case, with or without accents; and words in capitals.
#ifndef KINGLET_RUNTIME_TYPING_LETTERS_H_
#define KINGLET_RUNTIME_TYPING_LETTERS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace kinglet::typing {

// Code points; a byte that begins no character of UTF-8 is kByte plus the byte.
using Letters = std::u32string;
using LettersView = std::u32string_view;
inline constexpr char32_t kByte = 0x110000;

// The characters of a text in lower case.
Letters LowerLetters(std::string_view text);
// The text of letters.
std::string TextOf(const Letters& letters);
// A letter without its accent, if it has one letter as its base; otherwise the letter itself.
char32_t WithoutAccent(char32_t letter);
// Whether people leave the character out of a word at no cost: apostrophes and hyphens.
bool IsOptional(char32_t letter);
// Whether the character is a letter or a digit rather than a mark, a space or a control.
bool IsWordLetter(char32_t letter);
// The letters of a text by which words are compared with blocked words: lower case, no accents, no
// optional characters.
Letters PlainLetters(std::string_view text);

// How the next word begins.
enum class Capitals : uint8_t {
  kAsWritten,  // as the vocabulary has it
  kFirst,      // the first character in upper case: after shift, or at the start of a sentence
  kAll,        // all characters in upper case
};
std::string WithCapitals(std::string_view text, Capitals capitals);

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_LETTERS_H_
