#include "runtime/typing/letter_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace kinglet::typing {

LetterModel::LetterModel(const WordList& words) {
  std::map<char32_t, uint64_t> counts;
  for (size_t i = 0; i < words.size(); ++i) {
    for (const char32_t letter : words.word(i)) ++counts[letter];
  }
  std::vector<std::pair<uint64_t, char32_t>> order;
  size_t letters = 0;
  for (const auto& [letter, count] : counts) {
    order.emplace_back(count, letter);
    letters += count;
  }
  std::sort(order.rbegin(), order.rend());
  for (const auto& [count, letter] : order) {
    if (frequent_.size() < kOthers - kFirst) frequent_ += letter;
  }
  std::sort(frequent_.begin(), frequent_.end());

  std::vector<uint32_t> seen;  // histories, each with the letter after it
  seen.reserve(letters + words.size());
  for (size_t number = 0; number < words.size(); ++number) {
    const LettersView word = words.word(number);
    uint32_t history = kBeginning;
    for (size_t i = 0; i <= word.size(); ++i) {
      const uint32_t letter = i < word.size() ? ClassOf(word[i]) : kEdge;
      seen.push_back(history << kClassBits | letter);
      history = After(history, letter);
    }
  }
  // In descending order contexts come before the shorter ones of which they are part.
  std::sort(seen.begin(), seen.end(), std::greater<>());
  std::vector<std::vector<uint32_t>> after(kContext + 1, std::vector<uint32_t>(kClasses));
  uint32_t last = seen.empty() ? 0 : seen[0] >> kClassBits;
  const auto close = [&](int length) {
    Add(Nearest(last, length), after[static_cast<size_t>(length)]);
    std::fill(after[static_cast<size_t>(length)].begin(), after[static_cast<size_t>(length)].end(),
              0);
  };
  for (const uint32_t event : seen) {
    const uint32_t history = event >> kClassBits;
    for (int length = kContext; length > 0 && history != last; --length) {
      if (Nearest(history, length) != Nearest(last, length)) close(length);
    }
    last = history;
    for (int length = 0; length <= LengthOf(history); ++length) {
      ++after[static_cast<size_t>(length)][event % kClasses];
    }
  }
  for (int length = kContext; length >= 0; --length) close(length);
  contexts_.push_back({0, static_cast<uint32_t>(after_.size())});
  contexts_.shrink_to_fit();
  after_.shrink_to_fit();
}

void LetterModel::Add(uint32_t history, const std::vector<uint32_t>& counts) {
  const auto first = static_cast<uint32_t>(after_.size());
  uint32_t kinds = 0;
  for (uint32_t letter = 0; letter < kClasses; ++letter) {
    if (counts[letter] == 0) continue;
    ++kinds;
    uint32_t scaled = std::min(counts[letter] - 1, Following::kMost), shift = 0;
    for (; scaled > Following::kMostScaled; scaled /= 2) ++shift;
    if (scaled > 0) after_.push_back({static_cast<uint16_t>(letter << 10 | shift << 6 | scaled)});
  }
  if (after_.size() > first) contexts_.push_back({history << 8 | kinds, first});
}

int LetterModel::LengthOf(uint32_t history) {
  int length = kContext;
  while (length > 0 && Nearest(history, length) == Nearest(history, length - 1)) --length;
  return length;
}

uint32_t LetterModel::ClassOf(char32_t letter) const {
  const auto place = std::lower_bound(frequent_.begin(), frequent_.end(), letter);
  if (place == frequent_.end() || *place != letter) return kOthers;
  return static_cast<uint32_t>(place - frequent_.begin()) + kFirst;
}

double LetterModel::Probability(uint32_t history, uint32_t letter) const {
  constexpr double kWeight = 5;  // of the shorter context, in letters
  double p = 1 / static_cast<double>(frequent_.size() + 2);
  for (int length = 0; length <= LengthOf(history); ++length) {
    const uint32_t nearest = Nearest(history, length);
    const auto end = contexts_.end() - 1;
    const auto context =
        std::lower_bound(contexts_.begin(), end, nearest,
                         [](const Context& a, uint32_t b) { return a.history() > b; });
    if (context == end || context->history() != nearest) break;
    uint32_t all = context->kinds(), count = 0;
    for (uint32_t i = context->first; i < context[1].first; ++i) {
      all += after_[i].count();
      if (after_[i].letter() == letter) count = after_[i].count();
    }
    p = (count + (kWeight + context->kinds()) * p) / (all + kWeight);
  }
  if (letter == kOthers) p /= kAllLetters - static_cast<double>(frequent_.size());
  return p;
}

double LetterModel::LogProbability(LettersView word) const {
  double sum = 0;
  uint32_t history = kBeginning;
  for (size_t i = 0; i <= word.size(); ++i) {
    const uint32_t letter = i < word.size() ? ClassOf(word[i]) : kEdge;
    sum += std::log(Probability(history, letter));
    history = After(history, letter);
  }
  return sum;
}

double LetterModel::ProbabilityOfAny(const WordList& words) const {
  // Of the last word's beginnings, which the next word shares.
  std::vector<std::pair<uint32_t, double>> beginnings = {{kBeginning, 1}};
  double sum = 0;
  LettersView last;
  for (size_t number = 0; number < words.size(); ++number) {
    const LettersView word = words.word(number);
    if (number > 0 && word == last) continue;
    const auto shared = std::mismatch(word.begin(), word.end(), last.begin(), last.end()).first;
    beginnings.resize(static_cast<size_t>(shared - word.begin()) + 1);
    while (beginnings.size() <= word.size()) {
      const auto [history, p] = beginnings.back();
      const uint32_t letter = ClassOf(word[beginnings.size() - 1]);
      beginnings.emplace_back(After(history, letter), p * Probability(history, letter));
    }
    sum += beginnings.back().second * Probability(beginnings.back().first, kEdge);
    last = word;
  }
  return sum;
}

}  // namespace kinglet::typing
