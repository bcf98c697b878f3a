#include "runtime/text/word_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <utility>

namespace kinglet::word_rules_test {
namespace {

std::string TokensOf(WordRule::Rule rule, std::string_view text) {
  const auto tokenized = SplitByRule(rule, text);
  EXPECT_TRUE(tokenized.ok());
  std::string out;
  uint32_t at = 0;
  for (const TokenizedText::Token& token : tokenized->tokens) {
    EXPECT_GE(token.begin, at);
    EXPECT_GT(token.end, token.begin);
    at = token.end;
    out += (out.empty() ? "" : " ") + std::string(tokenized->Piece(token));
  }
  return out;
}

TEST(WordRules, WikiTextSplitsPunctuationOffOnce) {
  const std::pair<const char*, const char*> lines[] = {
      {"Hello, world!", "Hello , world !"},
      {"a well-known 1,000.5 \"x\".", "a well @-@ known 1 @,@ 000 @.@ 5 \" x \" ."},
      {"I can't; it's Mr. Smith's.", "I can 't ; it 's Mr. Smith 's ."},
      {"The U.S. won (again).", "The U.S. won ( again ) ."},
      {"the boys' toys - 3.", "the boys ' toys - 3 ."},
      {"I'd say we 've", "I 'd say we 've"},
      {"say 'hello' now", "say ' hello ' now"},
      {"Mr. O'Brien's rock'n'roll", "Mr. O 'Brien 's rock 'n 'roll"},
      {"'Twas O'Brien, in the 1990's, \"'so'\"", "' Twas O 'Brien , in the 1990 's , \" ' so ' \""},
      {"boys'\u2014a'..b", "boys ' \u2014 a ' .. b"},
      {"\"Mr. A (of the U.S.\u2014no.\u2014yes)",
       "\" Mr. A ( of the U.S. \u2014 no . \u2014 yes )"},
      {"Wait... what?", "Wait ... what ?"},
      {"wait...what..", "wait ... what .."},
      {"\u201CIt\u2019s R&B,\u201D he said.", "\u201C It \u2019 s R & B , \u201D he said ."},
      {"1990\u20131995 (\u00A35, 20\u00B0)", "1990 \u2013 1995 ( \u00A3 5 , 20 \u00B0 )"},
      {"the U.S.\u201D", "the U.S. \u201D"},
      {"at 5 p.m.", "at 5 p.m."},
      {"so x = 3, he said : 'yes'", "so x = 3 , he said : ' yes '"},
      {"example.org.", "example.org ."},
      {"beans etc.", "beans etc ."},
      {"\xE2\x80 caf\u00E9\xC3.", "\xE2\x80 caf\u00E9\xC3 ."},
      {"-a- \xC3\xA9-b", "-a- \xC3\xA9 @-@ b"},
      {"", ""}};
  for (const auto& [text, wanted] : lines) {
    EXPECT_EQ(TokensOf(WordRule::Rule::kWikiText, text), wanted);
    EXPECT_EQ(TokensOf(WordRule::Rule::kWikiText, wanted), wanted);
  }
  const char tokenized[] = " = Robert <unk> = \n He won 1 @,@ 000 , with Dr. No. 1 , 'tis said . ";
  EXPECT_EQ(TokensOf(WordRule::Rule::kWikiText, tokenized),
            TokensOf(WordRule::Rule::kSpaces, tokenized));
}

// Signs as the Moses tokenizer (mosesdecoder, scripts/tokenizer/tokenizer.perl) escapes them are
// split like the signs themselves, which are in the lines of the test above.
TEST(WordRules, EntitiesAreSplitLikeTheirSigns) {
  const std::pair<const char*, const char*> signs[] = {
      {"&", "&amp;"}, {"'", "&apos;"}, {"\"", "&quot;"}, {"<", "&lt;"},
      {">", "&gt;"},  {"[", "&#91;"},  {"]", "&#93;"},   {"|", "&#124;"}};
  const auto escaped = [&](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const auto* const sign = std::find_if(std::begin(signs), std::end(signs),
                                            [&](const auto& each) { return each.first[0] == c; });
      out += sign == std::end(signs) ? std::string(1, c) : sign->second;
    }
    return out;
  };
  for (const std::string text :
       {"I can't; it's \"R&B\" [sic].", "say 'hello' now", "can 't", "a | b , \" c", "x|y [1]",
        "'Twas O'Brien, in the 1990's, \"'so'\"", "the boys' toys - 3.", "a <b> c", "AT&T 's"}) {
    EXPECT_EQ(TokensOf(WordRule::Rule::kWikiText, escaped(text)),
              escaped(TokensOf(WordRule::Rule::kWikiText, text)));
  }
  EXPECT_EQ(TokensOf(WordRule::Rule::kWikiText, "don &apos;t say &bar; or &quot; here"),
            "don &apos;t say &bar; or &quot; here");
  EXPECT_EQ(TokensOf(WordRule::Rule::kWikiText, "R&Bs; &apostrophe;"), "R & Bs ; & apostrophe ;");
}

TEST(WordRules, JoinersAreNotSplit) {
  EXPECT_EQ(TokensOf(WordRule::Rule::kWikiText, "1 @,@ 000 @/@ well @-@ known, 2 @.@ 5"),
            "1 @,@ 000 @/@ well @-@ known , 2 @.@ 5");
}

TEST(WordRules, TokenizingATokenizedTextChangesNothing) {
  const std::string_view parts[] = {"a",  "Be", "s", "1",      "'",    "'",      "-",     ".",
                                    ".",  ",",  "!", "\"",     "(",    "\u2019", "<unk>", "@-@",
                                    "Mr", "U",  "&", "\u00E9", "\xC3", "...",    " ",     " "};
  std::minstd_rand random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t count = random() % 14; count > 0; --count)
      text += parts[random() % std::size(parts)];
    const std::string once = TokensOf(WordRule::Rule::kWikiText, text);
    ASSERT_EQ(TokensOf(WordRule::Rule::kWikiText, once), once) << text;
  }
}

TEST(WordRules, SpacesAndCharacters) {
  EXPECT_EQ(TokensOf(WordRule::Rule::kSpaces,
                     " a\t,b\x1C"
                     "c\xC2\xA0 \u3000\xE3\x80"),
            "a ,b c \xE3\x80");
  EXPECT_EQ(TokensOf(WordRule::Rule::kCharacters, "a\xC3\xA9\xC3"), "a \xC3\xA9 \xC3");
}

}  // namespace
}  // namespace kinglet::word_rules_test
