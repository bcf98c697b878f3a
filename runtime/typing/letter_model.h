// The probability of a word that no list has, letter by letter.
#ifndef KINGLET_RUNTIME_TYPING_LETTER_MODEL_H_
#define KINGLET_RUNTIME_TYPING_LETTER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/typing/letters.h"
#include "runtime/typing/word_list.h"

namespace kinglet::typing {

// Each letter follows the two before it: counts of three letters in a list of words, smoothed by
// those of two and one. The probabilities of all words of all letters add up to 1. Immutable.
class LetterModel {
 public:
  // Throws std::bad_alloc. REQUIRES: the words are in lower case.
  explicit LetterModel(const WordList& words = {});

  // The natural log-probability of a word in lower case, its end included.
  double LogProbability(LettersView word) const;

 private:
  // Classes: the end or the beginning of a word, the most frequent letters, and all others.
  static constexpr size_t kClasses = 40, kEdge = 0, kOthers = kClasses - 1;
  static constexpr double kAllLetters = 0x110000 + 256;

  size_t ClassOf(char32_t letter) const;
  double Probability(size_t two_before, size_t before, size_t letter) const;

  Letters frequent_;              // ascending; letter i is of class i + 1
  std::vector<uint16_t> threes_;  // [two before][before][letter]
  std::vector<uint32_t> twos_, ones_, pairs_before_;
  uint64_t total_ = 0;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_LETTER_MODEL_H_
