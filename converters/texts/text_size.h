// Lengths of a text: what its log-probability is shared out among.
#ifndef KINGLET_CONVERTERS_TEXTS_TEXT_SIZE_H_
#define KINGLET_CONVERTERS_TEXTS_TEXT_SIZE_H_

#include <cstdint>
#include <string_view>

#include "format/vocabulary.h"

namespace kinglet {

struct TextSize {
  uint64_t words = 0;       // what stands between white space (converters/texts/word_splitter.h)
  uint64_t bytes = 0;       // white space too
  uint64_t characters = 0;  // of UTF-8: bytes that do not continue one

  TextSize& operator+=(const TextSize& other) {
    words += other.words;
    bytes += other.bytes;
    characters += other.characters;
    return *this;
  }
  // Of what is left of a text without a part of it.
  TextSize& operator-=(const TextSize& part) {
    words -= part.words;
    bytes -= part.bytes;
    characters -= part.characters;
    return *this;
  }
  bool operator==(const TextSize&) const = default;
};

// Of a text without ends of lines.
TextSize SizeOfLine(std::string_view line);

// How a text that was cut into pieces shows which of them are one word.
enum class PieceMarks : uint8_t {
  kNone,       // pieces are words
  kGoesOn,     // lo@@ w@@ er (subword-nmt, fastBPE)
  kWordStart,  // ▁low er (SentencePiece)
  kInside,     // low ##er (WordPiece)
};
// The marks that more than a twentieth of a vocabulary's words have.
PieceMarks PieceMarksOf(const Vocabulary& vocabulary);
// Of the text that a line of pieces was before it was cut: one space between words.
TextSize SizeOfPieces(std::string_view line, PieceMarks marks);

// The end of a line, whatever stands for it.
inline constexpr TextSize kEndOfLineSize = {1, 1, 1};

inline bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_TEXT_SIZE_H_
