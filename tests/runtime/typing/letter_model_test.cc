#include "runtime/typing/letter_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace kinglet::typing {
namespace {

const WordList kWords = {{U"the", 0}, {U"then", 0}, {U"hen", 0}, {U"ten", 0}, {U"e", 0}};

// The letters of the words, and one that stands for all others.
double SumOfWords(const LetterModel& model, const Letters& word, size_t letters_left) {
  double sum = std::exp(model.LogProbability(word));
  if (letters_left == 0) return sum;
  for (const char32_t letter : U"then") {
    if (letter != 0) sum += SumOfWords(model, word + letter, letters_left - 1);
  }
  return sum;
}

TEST(LetterModel, ProbabilitiesAddUpToAtMostOne) {
  const LetterModel model(kWords);
  double before = 0;
  for (size_t letters = 1; letters <= 8; ++letters) {
    const double sum = SumOfWords(model, U"", letters);
    EXPECT_GT(sum, before);
    EXPECT_LT(sum, 1);
    before = sum;
  }
}

// With one letter, and all others as one: the sum over words of any length converges to 1.
TEST(LetterModel, ProbabilitiesOfAllWordsAddUpToOne) {
  const LetterModel model(WordList{{U"aa", 0}, {U"a", 0}});
  const double others = 0x110000 + 256 - 1;
  double sum = 0;
  for (uint32_t length = 0; length <= 14; ++length) {
    for (uint32_t pattern = 0; pattern < uint32_t{1} << length; ++pattern) {
      Letters word;
      double ways = 1;
      for (uint32_t i = 0; i < length; ++i) {
        const bool is_other = (pattern >> i & 1) != 0;
        word += is_other ? U'b' : U'a';
        if (is_other) ways *= others;
      }
      sum += ways * std::exp(model.LogProbability(word));
    }
  }
  EXPECT_GT(sum, 0.9);
  EXPECT_LT(sum, 1 + 1e-9);
}

// p(l | c) = (n(cl) - 1 + (5 + k(c)) p(l | c')) / (n(c) + 5) for each context c that some letter
// follows, k(c) different ones, and c' without its first letter. '<' begins and '>' ends a word.
double ExpectedLogProbability(const std::vector<std::string>& words, const std::string& word) {
  std::map<std::string, std::map<char, int>> counts;
  std::set<char> letters = {'>', '?'};  // ?: all others
  for (const std::string& one : words) {
    const std::string all = "<" + one + ">";
    letters.insert(one.begin(), one.end());
    for (size_t i = 1; i < all.size(); ++i) {
      for (size_t length = 0; length <= std::min<size_t>(i, 4); ++length) {
        ++counts[all.substr(i - length, length)][all[i]];
      }
    }
  }
  double sum = 0;
  const std::string all = "<" + word + ">";
  for (size_t i = 1; i < all.size(); ++i) {
    double p = 1.0 / static_cast<double>(letters.size());
    for (size_t length = 0; length <= std::min<size_t>(i, 4); ++length) {
      const auto& after = counts[all.substr(i - length, length)];
      int n = 0;
      for (const auto& [letter, count] : after) n += count;
      const int of_letter = after.contains(all[i]) ? after.at(all[i]) - 1 : 0;
      p = (of_letter + (5 + static_cast<double>(after.size())) * p) / (n + 5);
    }
    if (!letters.contains(all[i])) p /= 0x110000 + 256 - (static_cast<double>(letters.size()) - 2);
    sum += std::log(p);
  }
  return sum;
}

TEST(LetterModel, FourLettersBeforeCount) {
  const std::vector<std::string> words = {"singing", "ringing", "bringing", "ring", "sing",
                                          "wing",    "winging", "in",       "in",   "i"};
  WordList list;
  for (const std::string& word : words) list.Add(LowerLetters(word), 0);
  list.Sort();
  const LetterModel model(list);
  for (const char* word : {"", "i", "ringing", "swing", "gni", "inging", "xin", "zz"}) {
    EXPECT_NEAR(model.LogProbability(LowerLetters(word)), ExpectedLogProbability(words, word),
                1e-12)
        << word;
  }
  std::set<std::string> different(words.begin(), words.end());
  double any = 0;
  for (const std::string& word : different) any += std::exp(ExpectedLogProbability(words, word));
  EXPECT_NEAR(model.ProbabilityOfAny(list), any, 1e-12);
}

// Large counts are rounded, and probabilities still add up to 1.
TEST(LetterModel, CountsMayBeLarge) {
  WordList list;
  for (uint32_t i = 0; i < 100000; ++i) list.Add(i % 3 == 0 ? U"ab" : U"b", i);
  list.Sort();
  const LetterModel model(list);
  EXPECT_NEAR(model.LogProbability(U"ab"), std::log(1.0 / 3), 0.03);
  EXPECT_NEAR(model.LogProbability(U"b"), std::log(2.0 / 3), 0.03);
  const double any = model.ProbabilityOfAny(list);
  EXPECT_GT(any, 0.999);
  EXPECT_LT(any, 1);
}

// More than any count that is told apart: 2^22 times "a" after "aaaa", as a long word has them.
TEST(LetterModel, CountsMayBeTooLarge) {
  WordList list;
  list.Add(Letters(size_t{1} << 22, U'a'), 0);
  const LetterModel model(list);
  const double more = model.LogProbability(U"aaaaaaa") - model.LogProbability(U"aaaaaa");
  EXPECT_NEAR(more, 0, 1e-5);
}

TEST(LetterModel, LikelyLettersAreLikelier) {
  const LetterModel model(kWords);
  EXPECT_GT(model.LogProbability(U"ther"), model.LogProbability(U"hetr"));
  EXPECT_GT(model.LogProbability(U"the"), model.LogProbability(U"\u4E2D"));
  EXPECT_GT(LetterModel().LogProbability(U""), -10);
}

}  // namespace
}  // namespace kinglet::typing
