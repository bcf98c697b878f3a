#include "runtime/phrases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace kinglet::phrases_test {
namespace {

using Units = std::vector<uint32_t>;

struct Phrase {
  Units units;
  double bonus;
};

// The bonus of a text by the definition: every place is compared with every phrase.
double BonusOf(const Units& text, const std::vector<Phrase>& phrases, bool has_ended) {
  const auto is_at = [&](size_t begin, const Units& units, size_t length) {
    return begin + length <= text.size() &&
           std::equal(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(length),
                      text.begin() + static_cast<std::ptrdiff_t>(begin));
  };
  double bonus = 0;
  for (const Phrase& phrase : phrases) {
    const size_t length = phrase.units.size();
    for (size_t begin = 0; begin < text.size(); ++begin) {
      if (is_at(begin, phrase.units, length)) bonus += phrase.bonus * static_cast<double>(length);
    }
  }
  if (has_ended) return bonus;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    const size_t length = text.size() - begin;
    std::vector<double> steps(length, -INFINITY);
    bool is_beginning = false;
    for (const Phrase& phrase : phrases) {
      for (size_t i = 1; i <= std::min(length, phrase.units.size()); ++i) {
        if (is_at(begin, phrase.units, i)) steps[i - 1] = std::max(steps[i - 1], phrase.bonus);
      }
      is_beginning =
          is_beginning || (phrase.units.size() > length && is_at(begin, phrase.units, length));
    }
    if (!is_beginning) continue;
    for (const double step : steps) bonus += step;
    return bonus;
  }
  return bonus;
}

TEST(Phrases, GrowByTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<Phrase> drawn;
    Phrases phrases;
    for (size_t i = random() % 7; i > 0; --i) {
      Phrase phrase = {Units(1 + random() % 4), static_cast<double>(random() % 9) / 4};
      for (uint32_t& unit : phrase.units) unit = static_cast<uint32_t>(random() % 3);
      phrases.Add(phrase.units, phrase.bonus);
      drawn.push_back(phrase);
    }
    phrases.Link();
    EXPECT_EQ(phrases.empty(), drawn.empty());
    Units text;
    Phrases::State state = Phrases::kNone;
    double sum = 0;
    for (int at = 0; at < 40; ++at) {
      std::vector<double> all(5, 7);
      phrases.Bonuses(state, all);
      for (uint32_t unit = 0; unit < all.size(); ++unit) {
        EXPECT_EQ(all[unit], phrases.Next(state, unit).bonus);
      }
      text.push_back(static_cast<uint32_t>(random() % 4));
      const Phrases::Step step = phrases.Next(state, text.back());
      state = step.after;
      sum += step.bonus;
      ASSERT_NEAR(sum, BonusOf(text, drawn, false), 1e-9) << round << " " << at;
      ASSERT_NEAR(sum + phrases.End(state), BonusOf(text, drawn, true), 1e-9);
    }
  }
}

// "new york" is being matched, then is a part of "new york times", then fails.
TEST(Phrases, TakeBackWhatFails) {
  Phrases phrases;
  phrases.Add(Units{1, 2}, 1);
  phrases.Add(Units{1, 2, 3}, 2);
  phrases.Link();
  const Phrases::Step first = phrases.Next(Phrases::kNone, 1);
  EXPECT_EQ(first.bonus, 2);
  const Phrases::Step second = phrases.Next(first.after, 2);
  EXPECT_EQ(second.bonus, 2 + 2 * 1);
  EXPECT_EQ(phrases.Next(second.after, 3).bonus, 3 * 2 - 4);
  EXPECT_EQ(phrases.Next(second.after, 9).bonus, -4);
  EXPECT_EQ(phrases.Next(second.after, 1).bonus, 2 - 4);
  EXPECT_EQ(phrases.End(second.after), -4);
}

}  // namespace
}  // namespace kinglet::phrases_test
