#include "runtime/text/word_pieces.h"

#include <gtest/gtest.h>

namespace kinglet::word_pieces_test {
namespace {

std::string CutOf(std::string_view text, bool plain_letters = true) {
  const WordPieces pieces(
      {plain_letters,
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "##s", "un", "##aff", "##able", ",",
        "\xE6\xBC\xA2", "i", "Caf\xC3\xA9", "\xE1\x84\x80", "##\xE1\x85\xA1"}});
  const auto cut = pieces.Encode(text);
  EXPECT_TRUE(cut.ok());
  EXPECT_EQ(cut->segments.size(), cut->tokens.size());
  std::string out;
  for (const Cut::Token& token : cut->tokens) {
    EXPECT_LE(token.begin, token.end);
    EXPECT_LE(token.end, text.size());
    out += (out.empty() ? "" : " ") + std::string(cut->Piece(token));
  }
  return out;
}

TEST(WordPieces, TakesTheLongestPiecesOfPlainWords) {
  EXPECT_EQ(CutOf("Caf\xC3\xA9s,UNAFFABLE"), "[CLS] cafe ##s , un ##aff ##able [SEP]");
  EXPECT_EQ(CutOf("cafe\xCC\x81 \xC4\xB0"), "[CLS] cafe i [SEP]");
  EXPECT_EQ(CutOf("Caf\xC3\xA9 cafe", false), "[CLS] Caf\xC3\xA9 cafe [SEP]");
  EXPECT_EQ(CutOf("i\xE6\xBC\xA2i \xEA\xB0\x80"),
            "[CLS] i \xE6\xBC\xA2 i \xE1\x84\x80 ##\xE1\x85\xA1 [SEP]");
  EXPECT_EQ(CutOf("un\xE2\x80\x8B"
                  "aff\x07\xFF"
                  "able\xC2\xA0i"),
            "[CLS] un ##aff ##able i [SEP]");
}

TEST(WordPieces, WordsWithoutPiecesAreUnknownAndMarksStayWhole) {
  EXPECT_EQ(CutOf("unq i"), "[CLS] [UNK] i [SEP]");
  EXPECT_EQ(CutOf(std::string(101, 'i')), "[CLS] [UNK] [SEP]");
  EXPECT_EQ(CutOf("a[MASK]i"), "[CLS] [UNK] [MASK] i [SEP]");
  EXPECT_EQ(CutOf(""), "[CLS] [SEP]");
}

TEST(WordPieces, PairsHaveTwoSegments) {
  const WordPieces pieces({true, {"[UNK]", "[CLS]", "[SEP]", "a"}});
  const auto cut = pieces.Encode("a ||| a a");
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->segments, (std::vector<uint8_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(cut->tokens[3].begin, 6u);
}

}  // namespace
}  // namespace kinglet::word_pieces_test
