#include "runtime/text/byte_pieces.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/text/tokenizer.h"
#include "tests/support/byte_pieces.h"

namespace kinglet::byte_pieces_test {
namespace {

// Tokens with their bytes, "abab" as "ab|ab".
std::string Split(std::string_view text, bool space_before = false) {
  BytePieceTables tables = SmallBytePieces();
  tables.space_before = space_before;
  const BytePieces pieces(std::move(tables));
  TextPart whole;
  const auto tokenized = pieces.Encode(text, whole);
  EXPECT_TRUE(tokenized.ok());
  std::string out, bytes;
  for (const TokenizedText::Token& token : tokenized->tokens) {
    const std::string_view part = text.substr(token.begin, token.end - token.begin);
    bytes += part;
    out += (&token == tokenized->tokens.data() ? "" : "|") + std::string(part);
    if (token.id != 256 && !space_before) {
      EXPECT_EQ(pieces.Spell(token.id).text, part);
    }
  }
  EXPECT_EQ(bytes, text);  // every byte is in one token
  return out;
}

TEST(BytePieces, MergeTheBestPairsFirst) {
  EXPECT_EQ(Split(""), "");
  EXPECT_EQ(Split("abab"), "ab|ab");
  EXPECT_EQ(Split(" abab"), " ab|ab");
  EXPECT_EQ(Split("aab b"), "a|ab| |b");
}

// No merge crosses what the pattern splits.
TEST(BytePieces, SplitTextsByThePattern) {
  EXPECT_EQ(Split("  ab"), " | ab");
  EXPECT_EQ(Split("    ab"), "  | | ab");
  EXPECT_EQ(Split("ab   "), "ab|  | ");
  EXPECT_EQ(Split("a1b"), "a|1|b");
  EXPECT_EQ(Split("a\n\nb"), "a|\n|\n|b");
}

TEST(BytePieces, AMarkIsOneTokenThatMaySpellNothing) {
  EXPECT_EQ(Split("ab<|endoftext|> ab"), "ab|<|endoftext|>| ab");
  EXPECT_EQ(Split("  <|endoftext|>"), "  |<|endoftext|>");
  const BytePieces pieces(SmallBytePieces());
  EXPECT_EQ(pieces.Spell(256).text, "");
  EXPECT_EQ(pieces.IdOf("<|endoftext|>"), 256u);
  EXPECT_EQ(pieces.IdOf("none"), std::nullopt);
  BytePieceTables spelled = SmallBytePieces();
  spelled.spelled_marks = {256};
  EXPECT_EQ(BytePieces(spelled).Spell(256).text, "<|endoftext|>");
}

TEST(BytePieces, ASpaceBeforeTheTextHasNoBytes) {
  EXPECT_EQ(Split("ab ab", true), "ab| ab");
  EXPECT_EQ(Split(" ab", true), " ab");
  EXPECT_EQ(Split("\nab", true), "|\n|ab");
  EXPECT_EQ(Split("\n", true), "|\n");
  EXPECT_EQ(Split("", true), "");
}

TEST(BytePieces, BytesOfNoCharacterAreTokensToo) {
  EXPECT_EQ(Split("\xC3"), "\xC3");
  EXPECT_EQ(Split("a\xFF\xE2\x96\x81"), "a|\xFF|\xE2|\x96|\x81");
}

TEST(BytePieces, DecodedTextEndsInNoCharacter) {
  const auto tokenizer = *Tokenizer::Create({false, SmallBytePieces()});
  TextDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.Add(0xE2), "");
  EXPECT_EQ(decoder.Add(0x96), "");
  EXPECT_EQ(decoder.Add(0x81), "\xE2\x96\x81");
  EXPECT_EQ(decoder.Add(259), " ab");
  EXPECT_EQ(decoder.Add(0xC3), "");
  EXPECT_EQ(decoder.Finish(), "\xEF\xBF\xBD");
}

// A run of one letter has merges of one rank only; quadratic time would take minutes.
TEST(BytePieces, LongWordsTakeLinearTime) {
  const std::string text(1 << 20, ' ');
  const BytePieces pieces(SmallBytePieces());
  TextPart whole;
  EXPECT_EQ(pieces.Encode(text, whole)->tokens.size(), text.size() / 2);
}

}  // namespace
}  // namespace kinglet::byte_pieces_test
