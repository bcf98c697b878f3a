#include "tools/phrase_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace kinglet::phrase_list_test {
namespace {

TEST(PhraseList, SumsTheBonusesOfWords) {
  const PhraseList list =
      *PhraseList::Parse("new york\t0.5\r\n\n  york  city \nJos\xC3\xA9\t-2", "names");
  EXPECT_EQ(list.BonusOf(""), 0);
  EXPECT_EQ(list.BonusOf("in new york"), 2 * 0.5);
  EXPECT_EQ(list.BonusOf("new\tyork city"), 2 * 0.5 + 2 * 1);
  EXPECT_EQ(list.BonusOf("new"), 0);
  EXPECT_EQ(list.BonusOf("new new york york Jos\xC3\xA9"), 2 * 0.5 - 2);
  EXPECT_EQ(list.Number("elsewhere"), UINT32_MAX);
  EXPECT_EQ(PhraseList().BonusOf("new york"), 0);
}

TEST(PhraseList, RefusesLinesByTheirNumbers) {
  EXPECT_EQ(PhraseList::Parse("a b\nc\tmany\n", "names").status().message(),
            "names: line 2: expected PHRASE, or PHRASE<tab>BONUS with a finite number, found "
            "\"c?many\"");
  for (const std::string text : {"", "\n \n", "\t1", "a\tinf", "a\t1\t2"}) {
    EXPECT_EQ(PhraseList::Parse(text, "names").status().code(), KINGLET_INVALID_ARGUMENT) << text;
  }
}

}  // namespace
}  // namespace kinglet::phrase_list_test
