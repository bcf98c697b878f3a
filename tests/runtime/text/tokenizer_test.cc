#include "runtime/text/tokenizer.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace kinglet::tokenizer_test {
namespace {

std::string Joined(const Tokenizer& tokenizer, std::initializer_list<const char*> pieces) {
  TextDecoder decoder(tokenizer);
  std::string text;
  for (const char* piece : pieces) text += decoder.Add(std::string_view(piece));
  return text + decoder.Finish();
}

TEST(Tokenizer, RangesAreOfTheTextBeforeItWasLowerCased) {
  const auto tokenizer = Tokenizer::Create({true, WordRule{WordRule::Rule::kSpaces}});
  ASSERT_TRUE(tokenizer.ok());
  const auto tokenized = (*tokenizer)
                             ->Encode(
                                 "\xE2\x84\xAA"
                                 "A B");
  ASSERT_TRUE(tokenized.ok());
  ASSERT_EQ(tokenized->tokens.size(), 2u);
  EXPECT_EQ(tokenized->Piece(tokenized->tokens[0]), "ka");
  EXPECT_EQ(tokenized->tokens[0].end, 4u);
  EXPECT_EQ(tokenized->tokens[1].begin, 5u);
  EXPECT_EQ((*tokenizer)->size(), 0u);
}

// Marks are not text in capital letters, and so are not lower-cased.
TEST(Tokenizer, MarksKeepTheirCase) {
  Marks marks;
  for (const char* word : {"<UNK>", "[MASK]"}) marks.Add(word);
  const auto pieces_of = [&](WordRule::Rule rule, std::string_view text) {
    const auto tokenized = (*Tokenizer::Create({true, WordRule{rule}}, marks))->Encode(text);
    std::string out;
    for (const TokenizedText::Token& token : tokenized->tokens) {
      out += (out.empty() ? "" : " ") + std::string(tokenized->Piece(token));
      EXPECT_EQ(token.end - token.begin, tokenized->Piece(token).size()) << text;
    }
    return out;
  };
  const auto kSpaces = WordRule::Rule::kSpaces, kWikiText = WordRule::Rule::kWikiText;
  EXPECT_EQ(pieces_of(kSpaces, "A [MASK] <UNK> [Mask]"), "a [MASK] <UNK> [mask]");
  EXPECT_EQ(pieces_of(kSpaces, "[MASK][MASK]X"), "[MASK][MASK]x");
  EXPECT_EQ(pieces_of(kWikiText, "The [MASK], \"[MASK]\" OR [SIC]."),
            "the [MASK] , \" [MASK] \" or [ sic ] .");
}

TEST(Tokenizer, TokensJoinToText) {
  const auto spaces = *Tokenizer::Create({false, WordRule{WordRule::Rule::kSpaces}});
  EXPECT_EQ(Joined(*spaces, {"a", "b"}), "a b");
  const auto wikitext = *Tokenizer::Create({false, WordRule{WordRule::Rule::kWikiText}});
  EXPECT_EQ(Joined(*wikitext, {"well", "@-@", "known", "1", "@,@", "0"}), "well-known 1,0");
  const auto characters = *Tokenizer::Create({false, WordRule{WordRule::Rule::kCharacters}});
  EXPECT_EQ(Joined(*characters, {"a", " ", "b"}), "a b");
  const auto codes = *Tokenizer::Create({false, MergeTables{false, {{"a", "b"}}, {}}});
  EXPECT_EQ(Joined(*codes, {"a@@", "b", "c@@"}), "ab c");
  EXPECT_EQ(Joined(*codes, {}), "");
}

TEST(Tokenizer, SenselessTablesAreRefused) {
  EXPECT_FALSE(Tokenizer::Create({false, SentencePieceTables{}}).ok());
}

}  // namespace
}  // namespace kinglet::tokenizer_test
