// Small models whose segmentations can be worked out by hand; tokenizer_file_test.cc compares with
// the original library's.
#include "runtime/text/sentence_pieces.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace kinglet::sentence_pieces_test {
namespace {

using Algorithm = SentencePieceTables::Algorithm;
using Type = SentencePieceTables::Type;

SentencePieceTables Model(Algorithm algorithm, std::vector<SentencePieceTables::Piece> pieces) {
  SentencePieceTables tables;
  tables.algorithm = algorithm;
  tables.normaliser = {true, true, true, {}};
  tables.unknown_surface = " ? ";
  tables.pieces = {{"<unk>", 0, Type::kUnknown}, {"</s>", 0, Type::kControl}};
  tables.pieces.insert(tables.pieces.end(), pieces.begin(), pieces.end());
  return tables;
}

std::string TokensOf(const SentencePieces& pieces, std::string_view text) {
  const auto tokenized = pieces.Encode(text);
  EXPECT_TRUE(tokenized.ok());
  std::string out;
  for (const TokenizedText::Token& token : tokenized->tokens) {
    out += (out.empty() ? "" : " ") + std::string(tokenized->Piece(token)) + ":" +
           std::to_string(token.id) + "[" + std::to_string(token.begin) + "," +
           std::to_string(token.end) + ")";
  }
  return out;
}

#define MARK "\xE2\x96\x81"

TEST(SentencePieces, UnigramTakesTheBestSumAndOfEqualOnesTheFirst) {
  const SentencePieces pieces(Model(Algorithm::kUnigram, {{MARK, -1},
                                                          {"a", -2},
                                                          {"b", -2},
                                                          {"ab", -4},
                                                          {MARK "a", -2.5F},
                                                          {"ba", -1},
                                                          {"xy", 0, Type::kUserDefined},
                                                          {"bb", 0, Type::kUnused}}));
  EXPECT_EQ(TokensOf(pieces, "ab"), MARK "a:6[0,1) b:4[1,2)");
  EXPECT_EQ(TokensOf(pieces, "aba"), MARK "a:6[0,1) ba:7[1,3)");
  EXPECT_EQ(TokensOf(pieces, "bb"), MARK ":2[0,0) b:4[0,1) b:4[1,2)");
  EXPECT_EQ(TokensOf(pieces, "q\xFFxy</s>"),
            MARK ":2[0,0) q\xEF\xBF\xBD:0[0,2) xy:8[2,4) </s>:0[4,8)");
  EXPECT_EQ(TokensOf(pieces, "  "), "");
  // "a" + "b" and "ab" have the same sum; the candidate that comes first stays.
  EXPECT_EQ(TokensOf(pieces, "xyab"), MARK ":2[0,0) xy:8[0,2) ab:5[2,4)");
}

TEST(SentencePieces, BpeMergesTheBestPairAndSplitsUnusedPieces) {
  const std::vector<SentencePieceTables::Piece> table = {
      {"ab", -1}, {"bc", -2}, {"abc", -3, Type::kUnused},   {"cc", -4}, {"a", -5},
      {"b", -6},  {"c", -7},  {"dd", 0, Type::kUserDefined}};
  const SentencePieces pieces(Model(Algorithm::kBpe, table));
  EXPECT_EQ(TokensOf(pieces, "abccc"), MARK ":0[0,0) ab:2[0,2) c:8[2,3) cc:5[3,5)");
  EXPECT_EQ(TokensOf(pieces, "abcabc"), MARK ":0[0,0) ab:2[0,2) c:8[2,3) ab:2[3,5) c:8[5,6)");
  EXPECT_EQ(TokensOf(pieces, "bcddq"), MARK ":0[0,0) bc:3[0,2) dd:9[2,4) q:0[4,5)");
}

TEST(SentencePieces, WordsAndCharacters) {
  const std::vector<SentencePieceTables::Piece> table = {{MARK "ab", -1}, {"a", -2}, {"b", -3}};
  EXPECT_EQ(TokensOf(SentencePieces(Model(Algorithm::kWord, table)), "ab  b"),
            MARK "ab:2[0,2) " MARK "b:0[2,5)");
  EXPECT_EQ(TokensOf(SentencePieces(Model(Algorithm::kCharacter, table)), "ab\xC3\xA9"),
            MARK ":0[0,0) a:3[0,1) b:4[1,2) \xC3\xA9:0[2,4)");
}

SentencePieceTables WithBytes() {
  std::vector<SentencePieceTables::Piece> table = {{MARK, -1}, {"a", -2}};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", static_cast<unsigned>(byte));
    table.push_back({text, 0, Type::kByte});
  }
  SentencePieceTables tables = Model(Algorithm::kUnigram, table);
  tables.byte_fallback = true;
  return tables;
}

TEST(SentencePieces, UnknownCharactersFallBackToBytes) {
  const SentencePieces pieces(WithBytes());
  EXPECT_EQ(TokensOf(pieces, "a\xC3\xA9"), MARK ":2[0,0) a:3[0,1) <0xC3>:199[1,1) <0xA9>:173[1,3)");
  SentenceDecoder decoder(pieces);
  EXPECT_EQ(decoder.Add(2), "");
  EXPECT_EQ(decoder.Add(199), "");  // half a character
  EXPECT_EQ(decoder.Add(173), "\xC3\xA9");
  EXPECT_EQ(decoder.Add(199), "");
  EXPECT_EQ(decoder.Add(3),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(decoder.Add(0), " ? ");
  EXPECT_EQ(decoder.Add(0, "\xC3\xA8"), "\xC3\xA8");
  EXPECT_EQ(decoder.Add(1), "");
  EXPECT_EQ(decoder.Add(199), "");
  EXPECT_EQ(decoder.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.Add(2), "");  // starts again
}

// 5 MB without a space: no loop may read the text again for each of its pieces.
TEST(SentencePieces, LongTextsTakeTimeInProportion) {
  const std::string text(500'000, 'a');
  for (const Algorithm algorithm : {Algorithm::kUnigram, Algorithm::kBpe}) {
    const SentencePieces pieces(
        Model(algorithm, {{"a", -3}, {"aa", -2}, {"aaaa", -1}, {MARK, -9}}));
    const auto tokenized = pieces.Encode(text);
    ASSERT_TRUE(tokenized.ok());
    EXPECT_EQ(tokenized->tokens.size(), 125'001u);
  }
}

}  // namespace
}  // namespace kinglet::sentence_pieces_test
