#include "runtime/typing/letters.h"

#include <gtest/gtest.h>

namespace kinglet::typing {
namespace {

TEST(Letters, AreLowerCaseCodePoints) {
  EXPECT_EQ(LowerLetters("\xC3\x89T\xFF"), (Letters{0xE9, 't', kByte + 0xFF}));
  EXPECT_EQ(TextOf(LowerLetters("\xC3\x89T\xFF")), "\xC3\xA9t\xFF");
  EXPECT_EQ(LowerLetters(std::string("a\0b", 3)).size(), 3u);
}

TEST(Letters, LoseAccentsThatHaveOneBase) {
  EXPECT_EQ(WithoutAccent(0xE9), U'e');
  EXPECT_EQ(WithoutAccent(0x1EC7), U'e');     // two marks
  EXPECT_EQ(WithoutAccent(0xDF), 0xDFU);      // sharp s has no accent
  EXPECT_EQ(WithoutAccent(0xAC00), 0xAC00U);  // a syllable has two letters
}

TEST(Letters, AreToldFromMarks) {
  for (const char32_t letter : U"aZ09\u00E9\u05D0\u4E2D\u00AA") {
    if (letter != 0) {
      EXPECT_TRUE(IsWordLetter(letter)) << static_cast<uint32_t>(letter);
    }
  }
  for (const char32_t mark : U"@-=.,'\u00D7\u2014\u20AC\u3000\u00A0\n") {
    EXPECT_FALSE(IsWordLetter(mark)) << static_cast<uint32_t>(mark);
  }
  EXPECT_FALSE(IsWordLetter(kByte + 0xFF));
}

TEST(Letters, AreComparedPlain) {
  EXPECT_EQ(PlainLetters("Caf\xC3\xA9"), U"cafe");
  EXPECT_EQ(PlainLetters("x-Ray's"), U"xrays");
}

TEST(Letters, BecomeCapitals) {
  EXPECT_EQ(WithCapitals("\xC3\xA9t\xC3\xA9", Capitals::kFirst), "\xC3\x89t\xC3\xA9");
  EXPECT_EQ(WithCapitals("\xC3\xA9t\xC3\xA9", Capitals::kAll), "\xC3\x89T\xC3\x89");
  EXPECT_EQ(WithCapitals("iPad", Capitals::kAsWritten), "iPad");
  EXPECT_EQ(WithCapitals("", Capitals::kFirst), "");
}

}  // namespace
}  // namespace kinglet::typing
