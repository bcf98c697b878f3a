// The words that one person types: how often, how lately, and after which words.
#ifndef KINGLET_RUNTIME_TYPING_USER_WORDS_H_
#define KINGLET_RUNTIME_TYPING_USER_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/typing/touches.h"

namespace kinglet::typing {

// Uses of a word after another one; after any other one if `before` is empty.
struct WordUses {
  std::string before, word;
  uint32_t uses = 0;
  uint32_t last = 0;  // the number of the latest use, counted over all words
};

// A list that grows, up to a bound; beyond it the words that count least are dropped. Words are
// distinct if any byte is; the words before them are in lower case.
class UserWords {
 public:
  static constexpr size_t kMostWords = 16384, kMostPairs = 24576;
  static constexpr size_t kMostLetters = kMostTouches;
  // Whether a text is a word: UTF-8 without spaces and controls, with a letter or a digit.
  static bool CanLearn(std::string_view word);
  // Whether a text in lower case can be the word before: also marks can, or nothing.
  static bool CanPrecede(std::string_view before);

  UserWords() = default;
  // Uses that may repeat words.
  explicit UserWords(const std::vector<WordUses>& all);

  // One use. Returns whether all words have other numbers now. REQUIRES: CanLearn, CanPrecede.
  bool Learn(std::string_view before, std::string_view word);
  // The steps of Learn. Drops the words that leave no place for `more` others; returns whether all
  // words have other numbers now. Without memory nothing changes.
  bool DropLeast(size_t more);
  void MakeRoom(std::string_view before, std::string_view word);
  // Takes no memory. REQUIRES: MakeRoom of these words was the last change.
  void Count(std::string_view before, std::string_view word);
  // Every use, in the order of words' numbers, those without a word before first.
  std::vector<WordUses> All() const;
  // The number of the next use; the highest number is that of all later ones.
  uint32_t next_use() const { return last_ == UINT32_MAX ? last_ : last_ + 1; }

  // Words have numbers below count(), some of which are words that only stand before others.
  size_t count() const { return words_.size(); }
  const std::string& text(size_t number) const { return words_[number].text; }
  uint32_t uses(size_t number) const { return words_[number].uses; }  // 0: no word of the person
  std::optional<uint32_t> Find(std::string_view word) const;
  // Numbers in the byte order of the words.
  const std::vector<uint32_t>& order() const { return order_; }

  // The part of what the person will type that the list is trusted with, from 0 up to 1.
  double share() const;
  // [number]: the probability of the word after `before`, among the person's words; the sum is 1
  // unless there are none.
  std::vector<double> Probabilities(std::string_view before) const;

 private:
  struct Word {
    std::string text;
    uint32_t uses = 0, last = 0;
  };
  struct Pair {
    uint32_t before, word, uses, last;
  };
  // Uses count less the more other uses followed them.
  template <class Counted>
  double Weight(const Counted& counted) const;
  double WeightOfAll() const;
  // The place in order_ where the text is, or would be inserted.
  size_t PlaceOf(std::string_view text) const;
  bool IsAt(size_t place, std::string_view text) const;
  uint32_t NumberOf(std::string_view text);

  std::vector<Word> words_;
  std::vector<uint32_t> order_;
  std::vector<Pair> pairs_;  // by before, then by word
  uint32_t last_ = 0;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_USER_WORDS_H_
