#include "runtime/typing/letter_model.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(LetterModel, LikelyLettersAreLikelier) {
  const LetterModel model(kWords);
  EXPECT_GT(model.LogProbability(U"ther"), model.LogProbability(U"hetr"));
  EXPECT_GT(model.LogProbability(U"the"), model.LogProbability(U"\u4E2D"));
  EXPECT_GT(LetterModel().LogProbability(U""), -10);
}

}  // namespace
}  // namespace kinglet::typing
