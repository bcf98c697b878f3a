#include "runtime/text/word_rules.h"

#include <gtest/gtest.h>

namespace kinglet::word_rules_test {
namespace {

std::string CutOf(WordRule::Rule rule, std::string_view text) {
  const auto cut = CutByRule(rule, text);
  EXPECT_TRUE(cut.ok());
  std::string out;
  uint32_t at = 0;
  for (const Cut::Token& token : cut->tokens) {
    EXPECT_GE(token.begin, at);
    EXPECT_GT(token.end, token.begin);
    at = token.end;
    out += (out.empty() ? "" : " ") + std::string(cut->Piece(token));
  }
  return out;
}

TEST(WordRules, WikiTextCutsPunctuationOnce) {
  const std::pair<const char*, const char*> lines[] = {
      {"Hello, world!", "Hello , world !"},
      {"a well-known 1,000.5 \"x\".", "a well @-@ known 1 @,@ 000 @.@ 5 \" x \" ."},
      {"I can't; it's Mr. Smith's.", "I can 't ; it 's Mr. Smith 's ."},
      {"The U.S. won (again).", "The U.S. won ( again ) ."},
      {"the boys' toys - 3.", "the boys ' toys - 3 ."},
      {"I'd say we 've", "I 'd say we 've"},
      {"say 'hello' now", "say ' hello ' now"},
      {"Wait... what?", "Wait ... what ?"},
      {"-a- \xC3\xA9-b", "-a- \xC3\xA9 @-@ b"},
      {"", ""}};
  for (const auto& [text, wanted] : lines) {
    EXPECT_EQ(CutOf(WordRule::Rule::kWikiText, text), wanted);
    EXPECT_EQ(CutOf(WordRule::Rule::kWikiText, wanted), wanted);
  }
  const char cut[] = " = Robert <unk> = \n He won 1 @,@ 000 , with Dr. No. 1 , 'tis said . ";
  EXPECT_EQ(CutOf(WordRule::Rule::kWikiText, cut), CutOf(WordRule::Rule::kSpaces, cut));
}

TEST(WordRules, SpacesAndCharacters) {
  EXPECT_EQ(CutOf(WordRule::Rule::kSpaces,
                  " a\t,b\x1C"
                  "c\xC2\xA0 "),
            "a ,b c\xC2\xA0");
  EXPECT_EQ(CutOf(WordRule::Rule::kCharacters, "a\xC3\xA9\xC3"), "a \xC3\xA9 \xC3");
}

}  // namespace
}  // namespace kinglet::word_rules_test
