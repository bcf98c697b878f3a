#include "runtime/text/word_pieces.h"

#include <gtest/gtest.h>

namespace kinglet::word_pieces_test {
namespace {

std::string TokensOf(std::string_view text, bool plain_letters = true) {
  const WordPieces pieces(
      {plain_letters,
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "##s", "un", "##aff", "##able", ",",
        "\xE6\xBC\xA2", "i", "Caf\xC3\xA9", "\xE1\x84\x80", "##\xE1\x85\xA1"}});
  const auto tokenized = pieces.Encode(text);
  EXPECT_TRUE(tokenized.ok());
  EXPECT_EQ(tokenized->segments.size(), tokenized->tokens.size());
  std::string out;
  for (const TokenizedText::Token& token : tokenized->tokens) {
    EXPECT_LE(token.begin, token.end);
    EXPECT_LE(token.end, text.size());
    out += (out.empty() ? "" : " ") + std::string(tokenized->Piece(token));
  }
  return out;
}

TEST(WordPieces, TakesTheLongestPiecesOfPlainWords) {
  EXPECT_EQ(TokensOf("Caf\xC3\xA9s,UNAFFABLE"), "[CLS] cafe ##s , un ##aff ##able [SEP]");
  EXPECT_EQ(TokensOf("cafe\xCC\x81 \xC4\xB0"), "[CLS] cafe i [SEP]");
  EXPECT_EQ(TokensOf("Caf\xC3\xA9 cafe", false), "[CLS] Caf\xC3\xA9 cafe [SEP]");
  EXPECT_EQ(TokensOf("i\xE6\xBC\xA2i \xEA\xB0\x80"),
            "[CLS] i \xE6\xBC\xA2 i \xE1\x84\x80 ##\xE1\x85\xA1 [SEP]");
  EXPECT_EQ(TokensOf("un\xE2\x80\x8B"
                     "aff\x07\xFF"
                     "able\xC2\xA0i"),
            "[CLS] un ##aff ##able i [SEP]");
}

TEST(WordPieces, WordsWithoutPiecesAreUnknownAndMarksAreNotSplit) {
  EXPECT_EQ(TokensOf("unq i"), "[CLS] [UNK] i [SEP]");
  EXPECT_EQ(TokensOf(std::string(101, 'i')), "[CLS] [UNK] [SEP]");
  EXPECT_EQ(TokensOf("a[MASK]i"), "[CLS] [UNK] [MASK] i [SEP]");
  EXPECT_EQ(TokensOf(""), "[CLS] [SEP]");
}

TEST(WordPieces, PairsHaveTwoSegments) {
  const WordPieces pieces({true, {"[UNK]", "[CLS]", "[SEP]", "a"}});
  const auto tokenized = pieces.Encode("a ||| a a");
  ASSERT_TRUE(tokenized.ok());
  EXPECT_EQ(tokenized->segments, (std::vector<uint8_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(tokenized->tokens[3].begin, 6u);
}

}  // namespace
}  // namespace kinglet::word_pieces_test
