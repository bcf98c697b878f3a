// Where a text may be split into parts whose tokens, one part after the other, are those of the
// whole text.
#ifndef KINGLET_RUNTIME_TEXT_TEXT_SPLITS_H_
#define KINGLET_RUNTIME_TEXT_TEXT_SPLITS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.h"

namespace kinglet {

// Immutable. Takes a few megabytes for SentencePiece models, so it is made for long texts only.
class TextSplits {
 public:
  // REQUIRES: `tokenizer` outlives the object.
  explicit TextSplits(const Tokenizer& tokenizer);

  // The last place at which the text may be split, whatever is before and after it: an offset, 0 if
  // there is none. The parts are encoded in order with one TextPart. WordPiece and BPE with unused
  // pieces have no such places, nor do unknown words of SentencePiece that follow each other.
  size_t Last(std::string_view text) const;

 private:
  enum class Kind : uint8_t {
    kNever,
    kAfterSpaces,
    kBeforeSpaces,
    kBetweenCharacters,
    kBetweenPieces
  };
  // Pairs of characters that are neighbours in one of many texts.
  class Pairs {
   public:
    // Returns false if the text is not UTF-8.
    bool Add(std::string_view text);
    void Sort();
    bool Contains(uint32_t left, uint32_t right) const;

   private:
    std::vector<uint64_t> pairs_;
  };
  bool ReadPieces(const SentencePieces& pieces);
  bool IsSplit(std::string_view text, size_t at) const;
  bool IsBetweenPieces(uint32_t left, uint32_t right, std::string_view text, size_t at) const;
  bool IsKnownWord(std::string_view word) const;
  bool Stays(uint32_t code) const;
  bool EndsAlone(uint32_t code) const;
  bool IsLowerCase(uint32_t code) const;

  const Tokenizer& tokenizer_;
  Kind kind_ = Kind::kNever;
  Pairs original_;    // in marks, and in texts that the normaliser takes as a whole
  Pairs normalised_;  // in pieces
  std::vector<uint32_t> rewritten_first_, rewritten_last_;  // characters of the normaliser's rules
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_TEXT_SPLITS_H_
