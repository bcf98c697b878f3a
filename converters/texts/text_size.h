// Lengths of a text, by which its log-probability is divided.
#ifndef KINGLET_CONVERTERS_TEXTS_TEXT_SIZE_H_
#define KINGLET_CONVERTERS_TEXTS_TEXT_SIZE_H_

#include <cstdint>
#include <string_view>

#include "format/utf8.h"
#include "format/vocabulary.h"

namespace kinglet {

struct TextSize {
  uint64_t words = 0;       // between white space (converters/texts/word_splitter.h)
  uint64_t bytes = 0;       // including white space
  uint64_t characters = 0;  // of UTF-8: bytes that do not continue a character

  TextSize& operator+=(const TextSize& other) {
    words += other.words;
    bytes += other.bytes;
    characters += other.characters;
    return *this;
  }
  // Subtracts the size of a part of the text.
  TextSize& operator-=(const TextSize& part) {
    words -= part.words;
    bytes -= part.bytes;
    characters -= part.characters;
    return *this;
  }
  bool operator==(const TextSize&) const = default;
};

// The size of a text without ends of lines.
TextSize SizeOfLine(std::string_view line);

// How a text that is split into pieces shows which pieces are one word.
struct PieceMarks {
  std::string_view mark = {};  // empty: pieces are words
  bool is_space = false;       // the mark stands for the space between words
  bool joins_last = false;     // a piece that begins with it continues the piece before
  bool joins_next = false;     // the piece after one that ends with it continues that one

  // Marks in angle brackets stand at the end of words.
  bool ends_words() const { return mark.starts_with('<'); }
  bool operator==(const PieceMarks&) const = default;
};
// The marks that more than a twentieth of a vocabulary's words have.
PieceMarks PieceMarksOf(const Vocabulary& vocabulary);
// The size of the text that a line of pieces was made from, with one space between words.
TextSize SizeOfPieces(std::string_view line, const PieceMarks& marks);
// Whether the space between two parts of a line of pieces is one between words.
bool IsBetweenWords(std::string_view before, std::string_view after, const PieceMarks& marks);

// The size of the end of a line, whichever word of the vocabulary it is.
inline constexpr TextSize kEndOfLineSize = {1, 1, 1};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_TEXT_SIZE_H_
