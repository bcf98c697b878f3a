#include "runtime/compress/token_follower.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::token_follower_test {
namespace {

// The tokens of a text: ids, "?" for unknown ones, "|" after each byte that completes some.
std::string Follow(const Model& model, TokenStyle style, const std::string& text) {
  const TokenSpellings spellings(model, style);
  TokenFollower follower(spellings, style);
  std::string found;
  for (const char byte : text) {
    std::vector<TokenFollower::Token> done;
    follower.Add(static_cast<uint8_t>(byte), done);
    for (const TokenFollower::Token& token : done) {
      found += token.rank ? std::to_string(spellings.IdOf(*token.rank)) : "?";
      found += " ";
    }
    if (!done.empty()) found += "|";
  }
  return found;
}

TEST(TokenFollower, WordsBetweenSpaces) {
  const auto model = TinyWords();
  EXPECT_EQ(Follow(*model, TokenStyle::kSpaced, "the w3  w17\nw1 w1x\t<unk> \n"),
            "0 |3 |17 1 |? |? |2 |1 |");
  EXPECT_EQ(Follow(*model, TokenStyle::kSpaced, std::string(1000, 'x') + " w3 "), "? |3 |");
}

TEST(TokenFollower, MarksAreTokensOfTypedText) {
  const auto model = TinyWords();
  EXPECT_EQ(Follow(*model, TokenStyle::kTyped, "the,w3. w4 "), "0 |? |3 |? |4 |");
  // <unk> is not typed, but split at its marks.
  EXPECT_EQ(Follow(*model, TokenStyle::kTyped, "<unk> w3\n"), "? |? |? |3 1 |");
}

TEST(TokenFollower, PiecesAreTheLongestThatFit) {
  ModelDraft draft = TinyMicronet();
  draft.tokenizer = TextTables{false, MergeTables{}};
  const auto model = Open(draft, "cpu");
  // w1 and w2 are no words; w10 to w22 are, and so are w3 to w9.
  const std::string found = Follow(*model, TokenStyle::kPieces, "w10 the w5 \n");
  EXPECT_NE(found.find("10 |"), std::string::npos) << found;
  EXPECT_NE(found.find("0 |"), std::string::npos) << found;
  EXPECT_TRUE(found.ends_with("1 |")) << found;
}

TEST(TokenFollower, TakesAnyBytes) {
  const auto model = TinyWords();
  for (uint64_t kind = 0; kind < kTextKinds; ++kind) {
    const Bytes bytes = MakeText(kind, 3000, kind);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const TokenStyle style : {TokenStyle::kSpaced, TokenStyle::kTyped, TokenStyle::kPieces}) {
      static_cast<void>(Follow(*model, style, text));
    }
  }
}

}  // namespace
}  // namespace kinglet::compress::token_follower_test
