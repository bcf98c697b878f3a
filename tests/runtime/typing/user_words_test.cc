#include "runtime/typing/user_words.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/runtime/typing/user_words_fixture.h"

namespace kinglet::typing {
namespace {

double ProbabilityOf(const UserWords& words, const std::string& before, const std::string& word) {
  const auto number = words.Find(word);
  return number ? words.Probabilities(before)[*number] : 0;
}

TEST(UserWords, CountsRecencyAndTheWordBefore) {
  UserWords words;
  EXPECT_EQ(words.share(), 0);
  for (int i = 0; i < 3; ++i) words.Learn("the", "kinglet");
  words.Learn("a", "wren");
  words.Learn("", "Wren");
  EXPECT_EQ(ListOf(words), (ListedWords{{"Wren", 1}, {"kinglet", 3}, {"wren", 1}}));
  for (const char* const before : {"", "the", "a", "never", "kinglet"}) {
    const auto p = words.Probabilities(before);
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 1e-12) << before;
  }
  EXPECT_NEAR(ProbabilityOf(words, "", "kinglet"), 0.6, 1e-3);
  EXPECT_GT(ProbabilityOf(words, "a", "wren"), 0.5);
  EXPECT_LT(ProbabilityOf(words, "the", "wren"), 0.1);
  EXPECT_GT(ProbabilityOf(words, "", "Wren"), ProbabilityOf(words, "", "wren"));  // later
  const double before = words.share();
  for (int i = 0; i < 20000; ++i) words.Learn("", "w" + std::to_string(i % 7));
  EXPECT_LT(ProbabilityOf(words, "", "kinglet"), 1e-3);
  EXPECT_GT(words.share(), before);
  EXPECT_LT(words.share(), 1);
}

TEST(UserWords, WordsAreTextsWithALetter) {
  for (const char* const good : {"a", "7", "caf\xC3\xA9", "don't", "x-ray", "\xD7\x90"}) {
    EXPECT_TRUE(UserWords::CanLearn(good)) << good;
  }
  const std::string longest(UserWords::kMostLetters, 'x');
  EXPECT_TRUE(UserWords::CanLearn(longest));
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("\xFF\x61"),
                                 std::string("-"), std::string("a\n"), std::string("a\0b", 3),
                                 std::string("a\xC2\x85"), std::string("a\xC2\xA0"), longest + "x"})
    EXPECT_FALSE(UserWords::CanLearn(bad)) << bad;
  EXPECT_TRUE(UserWords::CanPrecede("..."));
  EXPECT_TRUE(UserWords::CanPrecede(""));
}

TEST(UserWords, TheLeastAreDropped) {
  UserWords words;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 30; ++i) words.Learn("so", "often" + std::to_string(i));
  }
  bool was_renumbered = false;
  for (uint32_t i = 0; i < 40000; ++i) {
    was_renumbered |= words.Learn("w" + std::to_string(i / 2), "w" + std::to_string(i));
  }
  EXPECT_TRUE(was_renumbered);
  const ListedWords listed = ListOf(words);
  EXPECT_LE(listed.size(), UserWords::kMostWords);
  EXPECT_GE(listed.size(), UserWords::kMostWords * 9 / 10);
  EXPECT_TRUE(words.Find("w39999"));
  EXPECT_FALSE(words.Find("w100"));
  EXPECT_EQ(words.next_use(), 40061u);
  const auto p = words.Probabilities("w19999");
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 1e-9);
  EXPECT_EQ(ListOf(UserWords(words.All())), listed);
}

}  // namespace
}  // namespace kinglet::typing
