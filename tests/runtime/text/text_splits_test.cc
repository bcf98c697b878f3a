// Random texts of a few awkward strings, split at any of the places that may be: the tokens are
// those of the whole text.
#include "runtime/text/text_splits.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/text/plain_text.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/model_builder.h"

namespace kinglet::text_splits_test {
namespace {

using Algorithm = SentencePieceTables::Algorithm;
using Type = SentencePieceTables::Type;

#define MARK "\xE2\x96\x81"

// Line ends, bytes of no character, spaces of other kinds, marks, accents, quotations, entities.
constexpr std::array<const char*, 36> kStrings = {"a",
                                                  "b",
                                                  "ab",
                                                  "abc",
                                                  "c",
                                                  "A",
                                                  "B",
                                                  "x",
                                                  "q",
                                                  " ",
                                                  " ",
                                                  " ",
                                                  "  ",
                                                  "\t",
                                                  "\r",
                                                  "\r ",
                                                  MARK,
                                                  "\xEF\xBB\xBF",
                                                  "\xE3\x80\x80",
                                                  "\xC3",
                                                  "\x80",
                                                  "e\xCC\x81",
                                                  "\xC3\xA9",
                                                  "\xE4\xB8\xAD",
                                                  "<unk>",
                                                  "<A b>",
                                                  "[B",
                                                  "A]",
                                                  "'",
                                                  "' ",
                                                  ",",
                                                  " , ",
                                                  "1,2",
                                                  "a-b",
                                                  ".",
                                                  "&apos;"};

std::string RandomText(TestRandom& random) {
  std::string text;
  for (size_t n = 1 + random.Below(40); n > 0; --n) text += kStrings[random.Below(kStrings.size())];
  return std::string(PlainLine(text));
}

using Tokens = std::vector<std::tuple<uint32_t, size_t, size_t, std::string>>;

void Append(const TokenizedText& tokenized, size_t offset, Tokens& tokens) {
  for (const TokenizedText::Token& token : tokenized.tokens) {
    tokens.emplace_back(token.id, offset + token.begin, offset + token.end, tokenized.Piece(token));
  }
}

// Texts of a tokenizer; fewer where each takes a hundred times as long.
#ifdef KINGLET_SANITIZED
constexpr size_t kTexts = 60;
#else
constexpr size_t kTexts = 1000;
#endif

// Returns the number of parts of all texts.
size_t ComparePartsWithWhole(const TextTables& tables) {
  Marks marks;
  marks.Add("<unk>");
  marks.Add("<A b>");
  const auto tokenizer = *Tokenizer::Create(tables, marks);
  const TextSplits splits(*tokenizer);
  TestRandom random(7);
  size_t parts = 0;
  for (size_t i = 0; i < kTexts; ++i) {
    const std::string text = RandomText(random);
    Tokens whole, joined;
    Append(*tokenizer->Encode(text), 0, whole);
    std::vector<std::string_view> texts;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t split = splits.Last(rest.substr(0, 1 + random.Below(rest.size())));
      texts.push_back(rest.substr(0, split == 0 ? rest.size() : split));
      rest.remove_prefix(texts.back().size());
    }
    TextPart part;
    WikiTextLine line;
    if (tokenizer->reads_ahead()) {
      for (const std::string_view piece : texts) tokenizer->ReadAhead(piece, line);
      part.line = &line;
    }
    for (const std::string_view& piece : texts) {
      part.ends = &piece == &texts.back();
      EXPECT_EQ(PlainLine(piece), piece);
      const auto offset = static_cast<size_t>(piece.data() - text.data());
      Append(*tokenizer->EncodePart(piece, nullptr, part), offset, joined);
    }
    EXPECT_EQ(joined, whole) << text;
    if (joined != whole) return 0;
    parts += texts.size();
  }
  return parts;
}

SentencePieceTables Pieces(Algorithm algorithm) {
  SentencePieceTables tables;
  tables.algorithm = algorithm;
  tables.normaliser = {true, true, true, {}};
  tables.pieces = {{"<unk>", 0, Type::kUnknown}, {"</s>", 0, Type::kControl}};
  const std::vector<SentencePieceTables::Piece> pieces = {{MARK, -1.1F},
                                                          {"a", -2.3F},
                                                          {"b", -2.7F},
                                                          {"ab", -4.1F},
                                                          {MARK "a", -2.5F},
                                                          {"ba", -1.3F},
                                                          {"abc", -3.7F},
                                                          {MARK MARK, -3.9F},
                                                          {"c", -5.1F},
                                                          {"bc" MARK, -3.3F},
                                                          {",", -1.9F},
                                                          {"\xE4\xB8\xAD", -6.1F},
                                                          {".", -2.1F},
                                                          {"'", -2.2F},
                                                          {"cab", -1.01F},
                                                          {"aa", -3.02F},
                                                          {"xq", 0, Type::kUserDefined},
                                                          {"A" MARK, -2.04F}};
  tables.pieces.insert(tables.pieces.end(), pieces.begin(), pieces.end());
  return tables;
}

const std::vector<NormaliserTables::Rule> kRules = {
    {"\t", " "}, {"A", "a"}, {"e\xCC\x81", "\xC3\xA9"}, {"q", ""}, {"\xE3\x80\x80", " "}};

TEST(TextSplits, PartsOfSentencePieceTextsHaveTheTokensOfTheWhole) {
  for (const Algorithm algorithm :
       {Algorithm::kUnigram, Algorithm::kBpe, Algorithm::kCharacter, Algorithm::kWord}) {
    for (int form = 0; form < 64; ++form) {
      SentencePieceTables tables = Pieces(algorithm);
      const auto has = [form](int bit) { return (form >> bit & 1) != 0; };
      tables.normaliser.dummy_prefix = has(0);
      tables.normaliser.trim = has(1);
      tables.normaliser.escape = has(2);
      tables.space_suffix = has(3);
      if (has(4)) tables.normaliser.rules = kRules;
      // The few texts of a sanitized build may have no such place.
      const bool splits =
          kTexts >= 1000 && (algorithm != Algorithm::kWord || tables.normaliser.escape);
      EXPECT_GE(ComparePartsWithWhole({has(5), std::move(tables)}), kTexts + (splits ? 1 : 0))
          << static_cast<int>(algorithm) << " form " << form;
    }
  }
}

// Bytes in place of unknown characters need no known character after a border.
TEST(TextSplits, ByteFallbackHasMorePlaces) {
  SentencePieceTables tables = Pieces(Algorithm::kUnigram);
  const size_t before = ComparePartsWithWhole({false, tables});
  tables.byte_fallback = true;
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", static_cast<unsigned>(byte));
    tables.pieces.push_back({text, 0, Type::kByte});
  }
  EXPECT_GT(ComparePartsWithWhole({false, tables}), before);
}

TEST(TextSplits, PartsOfWordsHaveTheTokensOfTheWhole) {
  using Rule = WordRule::Rule;
  for (const bool lower_case : {false, true}) {
    for (const Rule rule : {Rule::kSpaces, Rule::kWikiText, Rule::kCharacters}) {
      EXPECT_GT(ComparePartsWithWhole({lower_case, WordRule{rule}}), kTexts);
    }
    const MergeTables merges{false, {{"a", "b"}, {"ab", "c</w>"}}, {}};
    EXPECT_GT(ComparePartsWithWhole({lower_case, merges}), kTexts);
    BytePieceTables bytes = SmallBytePieces();
    EXPECT_GT(ComparePartsWithWhole({lower_case, bytes}), kTexts);
    bytes.space_before = true;
    EXPECT_GT(ComparePartsWithWhole({lower_case, bytes}), kTexts);
  }
}

// Quadratic time would take minutes.
TEST(TextSplits, ARunOfSpacesIsReadOnce) {
  const auto tokenizer = *Tokenizer::Create({false, WordRule{WordRule::Rule::kWikiText}});
  const std::string text = "a" + std::string(1 << 20, ' ') + "b" + std::string(1 << 20, ' ');
  EXPECT_EQ(TextSplits(*tokenizer).Last(text), text.find('b'));
}

// Of two words, one that is known is a border; unknown words that follow each other are one token.
TEST(TextSplits, WordsSplitNextToAKnownOne) {
  const auto tokenizer = *Tokenizer::Create({false, Pieces(Algorithm::kWord)});
  const TextSplits splits(*tokenizer);
  EXPECT_EQ(splits.Last("b b a b b b"), 5U);
  EXPECT_EQ(splits.Last("b b a b"), 5U);
  EXPECT_EQ(splits.Last("b b b b b b"), 0U);
}

// A merge to an unused piece anywhere decides
// how it is split again; WordPiece adds tokens at both ends.
TEST(TextSplits, SomeTokenizersTakeWholeTexts) {
  SentencePieceTables unused = Pieces(Algorithm::kBpe);
  unused.pieces.push_back({"bac", -2, Type::kUnused});
  const WordPieceTables word_pieces{true, {"[UNK]", "[CLS]", "[SEP]", "a"}};
  for (const TextTables& tables : {TextTables{false, unused}, TextTables{false, word_pieces}}) {
    const auto tokenizer = *Tokenizer::Create(tables);
    EXPECT_EQ(TextSplits(*tokenizer).Last("a b a b a b"), 0U);
  }
}

}  // namespace
}  // namespace kinglet::text_splits_test
