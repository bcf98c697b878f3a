#include "runtime/typing/letter_model.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace kinglet::typing {

LetterModel::LetterModel(const WordList& words)
    : threes_(kClasses * kClasses * kClasses),
      twos_(kClasses * kClasses),
      ones_(kClasses),
      pairs_before_(kClasses * kClasses) {
  std::map<char32_t, uint64_t> counts;
  for (size_t i = 0; i < words.size(); ++i) {
    for (const char32_t letter : words.word(i)) ++counts[letter];
  }
  std::vector<std::pair<uint64_t, char32_t>> order;
  for (const auto& [letter, count] : counts) order.emplace_back(count, letter);
  std::sort(order.rbegin(), order.rend());
  for (const auto& [count, letter] : order) {
    if (frequent_.size() + 2 < kClasses) frequent_ += letter;
  }
  std::sort(frequent_.begin(), frequent_.end());
  for (size_t number = 0; number < words.size(); ++number) {
    const LettersView word = words.word(number);
    size_t two_before = kEdge, before = kEdge;
    for (size_t i = 0; i <= word.size(); ++i) {
      const size_t letter = i < word.size() ? ClassOf(word[i]) : kEdge;
      const size_t pair = two_before * kClasses + before;
      uint16_t& three = threes_[pair * kClasses + letter];
      if (three < UINT16_MAX) {
        ++three;
        ++pairs_before_[pair];
      }
      ++twos_[before * kClasses + letter];
      ++ones_[letter];
      ++total_;
      two_before = before;
      before = letter;
    }
  }
}

size_t LetterModel::ClassOf(char32_t letter) const {
  const auto place = std::lower_bound(frequent_.begin(), frequent_.end(), letter);
  if (place == frequent_.end() || *place != letter) return kOthers;
  return static_cast<size_t>(place - frequent_.begin()) + 1;
}

double LetterModel::Probability(size_t two_before, size_t before, size_t letter) const {
  // What the shorter contexts weigh, in words.
  constexpr double kWeight = 5;
  const size_t pair = two_before * kClasses + before, used = frequent_.size() + 2;
  uint64_t after_before = 0;
  for (size_t i = 0; i < kClasses; ++i) after_before += twos_[before * kClasses + i];
  double p = (static_cast<double>(ones_[letter]) + 1) / static_cast<double>(total_ + used);
  p = (static_cast<double>(twos_[before * kClasses + letter]) + kWeight * p) /
      (static_cast<double>(after_before) + kWeight);
  return (static_cast<double>(threes_[pair * kClasses + letter]) + kWeight * p) /
         (static_cast<double>(pairs_before_[pair]) + kWeight);
}

double LetterModel::LogProbability(LettersView word) const {
  double sum = 0;
  size_t two_before = kEdge, before = kEdge;
  for (size_t i = 0; i <= word.size(); ++i) {
    const size_t letter = i < word.size() ? ClassOf(word[i]) : kEdge;
    sum += std::log(Probability(two_before, before, letter));
    if (letter == kOthers) {
      sum -= std::log(kAllLetters - static_cast<double>(frequent_.size()));
    }
    two_before = before;
    before = letter;
  }
  return sum;
}

}  // namespace kinglet::typing
