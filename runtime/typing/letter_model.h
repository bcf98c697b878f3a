// The probability of a word that no list has, letter by letter.
#ifndef KINGLET_RUNTIME_TYPING_LETTER_MODEL_H_
#define KINGLET_RUNTIME_TYPING_LETTER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/typing/letters.h"
#include "runtime/typing/word_list.h"

namespace kinglet::typing {

// Each letter follows the four before it, by counts of five letters in a list of words. 1 is taken
// from every count and given to the shorter context (absolute discounting), so that a context which
// saw no letter twice is the shorter one, and is not stored. The probabilities of all words of all
// letters add up to 1. Immutable.
class LetterModel {
 public:
  // Throws std::bad_alloc. REQUIRES: the words are in lower case.
  explicit LetterModel(const WordList& words = {});

  // The natural log-probability of a word in lower case, its end included.
  double LogProbability(LettersView word) const;
  // The sum of the probabilities of the list's different words. REQUIRES: the list is sorted.
  double ProbabilityOfAny(const WordList& words) const;

 private:
  // Classes of letters: 0 for none, as before a word's beginning; the beginning or the end of a
  // word; the most frequent letters; all others.
  static constexpr uint32_t kEdge = 1, kFirst = 2, kOthers = 63, kClasses = 64;
  static constexpr int kClassBits = 6, kContext = 4;  // letters of a context
  static constexpr double kAllLetters = 0x110000 + 256;

  // The classes before a letter, the nearest one in the highest bits.
  static constexpr uint32_t kBeginning = kEdge << (kClassBits * (kContext - 1));
  static uint32_t After(uint32_t history, uint32_t letter) {
    return history >> kClassBits | letter << (kClassBits * (kContext - 1));
  }
  // The nearest `length` classes of a history.
  static uint32_t Nearest(uint32_t history, int length) {
    const int rest = kClassBits * (kContext - length);
    return history >> rest << rest;
  }
  static int LengthOf(uint32_t history);

  uint32_t ClassOf(char32_t letter) const;
  // Of one class after the history; for kOthers of each of its letters.
  double Probability(uint32_t history, uint32_t letter) const;

  struct Context {
    uint32_t history_and_kinds;  // 256 history + kinds of letters after it, also those seen once
    uint32_t first;              // of its letters in after_
    uint32_t history() const { return history_and_kinds >> 8; }
    uint32_t kinds() const { return history_and_kinds & 255; }
  };
  // A letter and how often it follows a context, minus 1 and at most kMost, rounded down to 6 bits
  // times 2^shift.
  struct Following {
    static constexpr uint32_t kMostScaled = 63, kMost = kMostScaled << 15;
    uint16_t bits;  // letter, 4 of the shift, 6 of the rest
    uint32_t letter() const { return bits >> 10; }
    uint32_t count() const { return (bits & kMostScaled) << (bits >> 6 & 15); }
  };
  // Appends a context with the counts of the letters after it.
  void Add(uint32_t history, const std::vector<uint32_t>& counts);

  Letters frequent_;               // ascending; letter i is of class i + kFirst
  std::vector<Context> contexts_;  // by history, descending; one more at the end
  std::vector<Following> after_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_LETTER_MODEL_H_
