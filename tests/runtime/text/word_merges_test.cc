#include "runtime/text/word_merges.h"

#include <gtest/gtest.h>

namespace kinglet::word_merges_test {
namespace {

std::string TokensOf(const WordMerges& merges, std::string_view text) {
  const auto tokenized = merges.Encode(text);
  EXPECT_TRUE(tokenized.ok());
  std::string out;
  for (const TokenizedText::Token& token : tokenized->tokens) {
    EXPECT_EQ(token.id, kNoPieceId);
    EXPECT_TRUE(
        tokenized->Piece(token).starts_with(text.substr(token.begin, token.end - token.begin)));
    out += (out.empty() ? "" : " ") + std::string(tokenized->Piece(token));
  }
  return out;
}

TEST(WordMerges, MergesOccurrencesOfTheBestPairFromTheLeft) {
  const WordMerges merges({false, {{"x", "x"}, {"xx", "x</w>"}, {"a", "b</w>"}, {"a", "b"}}, {}});
  EXPECT_EQ(TokensOf(merges, "xxx xxxx  ab aba \n"), "xxx xx@@ x@@ x ab ab@@ a");
  EXPECT_EQ(TokensOf(merges, "x \t q\xFF"), "x \t q@@ \xFF");
  EXPECT_EQ(TokensOf(merges, " \r\n"), "");
  EXPECT_EQ(TokensOf(merges, ""), "");
}

TEST(WordMerges, OldCodesHaveTheEndAsASymbol) {
  const WordMerges merges({true, {{"a", "b"}, {"ab", "</w>"}, {"c", "</w>"}}, {}});
  EXPECT_EQ(TokensOf(merges, "ab abc abd"), "ab ab@@ c ab@@ d");
}

TEST(WordMerges, RareTokensAreSplitAgain) {
  const WordMerges merges(
      {false, {{"a", "b"}, {"ab", "c</w>"}, {"ab", "d</w>"}}, {"a@@", "abc", "d"}});
  EXPECT_EQ(TokensOf(merges, "abc abd"), "abc a@@ b@@ d");
}

// Merges of an unknown author may join parts of the mark of the word's end. Each of these examples
// once gave the empty token for ever, or split a symbol where no mark was.
TEST(WordMerges, TokensAreSplitOnlyIntoPartsThatAreNotEmpty) {
  const MergeTables endless = {
      false, {{"a", "b</w>"}, {"b", "</w>"}, {"<", "/w>"}, {"b</", "w>"}}, {"x"}};
  EXPECT_EQ(TokensOf(WordMerges(endless), "ab b"), "a@@ b b");
  const MergeTables first_audit = {false, {{"a", "b</w>"}, {"b", "</w>"}, {"<", "/w>"}}, {"x"}};
  EXPECT_EQ(TokensOf(WordMerges(first_audit), "ab"), "a@@ b");
  // "b</w>" of two symbols that share the mark, and of a symbol and the mark alone.
  EXPECT_EQ(TokensOf(WordMerges({false, {{"a", "b</w>"}, {"b<", "/w>"}}, {"x"}}), "ab"), "a@@ b");
  EXPECT_EQ(TokensOf(WordMerges({true, {{"a", "b"}, {"ab", "</w>"}}, {"x"}}), "ab"), "ab");
}

}  // namespace
}  // namespace kinglet::word_merges_test
