#include "runtime/typing/word_list.h"

#include <gtest/gtest.h>

namespace kinglet::typing {
namespace {

TEST(WordList, IsSortedByLettersThenValues) {
  WordList words = {{U"to", 5}, {U"tea", 1}, {U"to", 3}, {U"\U0001F600", 7}, {U"", 2}};
  const std::pair<Letters, uint32_t> expected[] = {
      {U"", 2}, {U"tea", 1}, {U"to", 3}, {U"to", 5}, {U"\U0001F600", 7}};
  ASSERT_EQ(words.size(), std::size(expected));
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(words.word(i), expected[i].first);
    EXPECT_EQ(words.value(i), expected[i].second);
  }
  EXPECT_EQ(words.Alphabet(), U"aeot\U0001F600");
  words.Add(U"a", 9);
  words.Sort();
  EXPECT_EQ(words.word(1), U"a");
  EXPECT_EQ(WordList().Alphabet(), U"");
}

}  // namespace
}  // namespace kinglet::typing
