#include "format/text_tables.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <limits>

#include "format/model_file.h"
#include "format/writer.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/change_stride.h"
#include "tests/support/model_builder.h"

namespace kinglet::text_tables_test {
namespace {

using Type = SentencePieceTables::Type;

TextTables Pieces() {
  SentencePieceTables tables;
  tables.algorithm = SentencePieceTables::Algorithm::kBpe;
  tables.space_suffix = true;
  tables.normaliser = {true, false, true, {{"A", "a"}, {"AB", ""}, {"\xC3", "\xC3\xA9"}}};
  tables.denormaliser.rules = {{"x", "y"}};
  tables.unknown_surface = " ? ";
  tables.pieces = {{"<unk>", 0, Type::kUnknown}, {"a", -1.5F, Type::kNormal}};
  return {true, tables};
}

std::vector<TextTables> Examples() {
  MergeTables merges{true, {{"a", "b"}, {"ab", "c</w>"}}, {"a@@", "b"}};
  const WordPieceTables words{false, {"[UNK]", "a", "##b"}};
  return {Pieces(),
          {false, merges},
          {false, words},
          {true, WordRule{WordRule::Rule::kWikiText}},
          {false, WordRule{WordRule::Rule::kCharacters}, true},
          {false, SmallBytePieces()}};
}

TEST(TextTables, WhatIsPackedReadsBack) {
  for (const TextTables& tables : Examples()) {
    const auto bytes = PackTextTables(tables);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto read = ReadTextTables(*bytes);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(*read == tables);
    EXPECT_NE(TextTablesName(tables), std::string("unknown"));
  }
}

// Every byte missing, added or changed: refused, or tables that pack to the same bytes.
TEST(TextTables, DamagedBytesAreRefusedOrMeanSomething) {
  for (const TextTables& tables : Examples()) {
    const std::vector<std::byte> bytes = *PackTextTables(tables);
    for (size_t size = 0; size < bytes.size(); size += kChangeStride) {
      const auto read = ReadTextTables(std::span(bytes).first(size));
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.status().code(), KINGLET_INVALID_MODEL);
      EXPECT_TRUE(read.status().message().starts_with("tokenizer: ")) << read.status().message();
    }
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(ReadTextTables(longer).ok());
    for (size_t bit = 0; bit < 8 * bytes.size(); bit += kChangeStride) {
      std::vector<std::byte> changed = bytes;
      changed[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      const auto read = ReadTextTables(changed);
      EXPECT_TRUE(!read.ok() || *PackTextTables(*read) == changed);
    }
  }
}

// Rules are stored without the prefix of the rule before: few bytes may expand to many.
TEST(TextTables, RulesThatGrowTooMuchAreRefused) {
  for (const int rules : {100, 4000}) {
    TextTables tables = Pieces();
    auto& list = std::get<SentencePieceTables>(tables.method).normaliser.rules;
    list.clear();
    for (int i = 0; i < rules; ++i) {
      const char last[] = {static_cast<char>('a' + i / 676), static_cast<char>('a' + i / 26 % 26),
                           static_cast<char>('a' + i % 26)};
      list.push_back({std::string(250, 'x') + std::string(last, 3), std::string(255, 'y')});
    }
    const auto packed = PackTextTables(tables);
    EXPECT_EQ(packed.ok(), rules == 100);
    EXPECT_TRUE(packed.ok() || packed.status().code() == KINGLET_INVALID_ARGUMENT);
  }
  // Equal rules in a segment, of which a rule takes four bytes.
  TextTables one = Pieces();
  auto& list = std::get<SentencePieceTables>(one.method).normaliser.rules;
  list = {{std::string(250, 'x'), std::string(255, 'y')}};
  std::vector<std::byte> bytes = *PackTextTables(one);
  const auto is_count = [&](size_t at) {
    return bytes[at] == std::byte{1} && bytes[at + 4] == std::byte{0} &&
           bytes[at + 5] == std::byte{250};
  };
  size_t count = 0;
  while (!is_count(count)) ++count;
  std::vector<std::byte> more;
  uint32_t added = 0;
  for (int a = 0; a < 20; ++a) {
    // xx..x a, then xx..x a b: ascending, each longer or later than the rule before.
    const auto put = [&](std::initializer_list<int> values) {
      for (const int value : values) more.push_back(static_cast<std::byte>(value));
      ++added;
    };
    put({250, 1, 'a' + a, 255, 0});
    for (int b = 0; b < 100; ++b) put({251, 1, ' ' + b % 90 + b / 90, 255, 0});
  }
  const size_t end = count + 4 + 2 + 250 + 2 + 255;
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(end), more.begin(), more.end());
  const uint32_t rules = added + 1;
  std::memcpy(&bytes[count], &rules, sizeof rules);
  const auto read = ReadTextTables(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find("tokenizer: rules: expected at most"), std::string::npos)
      << read.status().message();
}

TEST(TextTables, SenselessTablesAreRefused) {
  const auto refused = [](const auto& edit) {
    TextTables tables = Pieces();
    edit(std::get<SentencePieceTables>(tables.method));
    return !CheckTextTables(KINGLET_INVALID_ARGUMENT, tables).ok() && !PackTextTables(tables).ok();
  };
  EXPECT_TRUE(refused([](auto& tables) { tables.pieces.clear(); }));
  EXPECT_TRUE(refused([](auto& tables) { tables.pieces[1].type = Type::kUnknown; }));
  EXPECT_TRUE(refused([](auto& tables) { tables.pieces[1].text = "<unk>"; }));
  EXPECT_TRUE(refused([](auto& tables) { tables.pieces[1].text = ""; }));
  EXPECT_TRUE(refused([](auto& tables) { tables.pieces[1].text = "\xFF"; }));
  EXPECT_TRUE(refused([](auto& tables) { tables.pieces[1].text.resize(kMaxPieceBytes + 1, 'a'); }));
  EXPECT_TRUE(refused([](auto& tables) { tables.pieces[1].type = Type::kByte; }));
  EXPECT_TRUE(refused([](auto& tables) { tables.byte_fallback = true; }));
  EXPECT_TRUE(refused(
      [](auto& tables) { tables.pieces[1].score = std::numeric_limits<float>::infinity(); }));
  EXPECT_TRUE(refused(
      [](auto& tables) { std::swap(tables.normaliser.rules[0], tables.normaliser.rules[1]); }));
  EXPECT_TRUE(refused([](auto& tables) { tables.normaliser.rules[0].to = "\xC3"; }));
  EXPECT_FALSE(PackTextTables({false, MergeTables{false, {{"a", "b"}, {"a", "b"}}, {}}}).ok());
  EXPECT_FALSE(PackTextTables({false, MergeTables{false, {{"a", "b"}}, {"b", "a"}}}).ok());
}

TEST(TextTables, SenselessBytePiecesAreRefused) {
  EXPECT_TRUE(CheckTextTables(KINGLET_INVALID_MODEL, {false, SmallBytePieces()}).ok());
  const auto refusal = [](const auto& edit) {
    BytePieceTables tables = SmallBytePieces();
    edit(tables);
    return CheckTextTables(KINGLET_INVALID_MODEL, {false, tables}).message();
  };
  EXPECT_EQ(refusal([](auto& tables) { tables.pieces[7] = "bc"; }),
            "tokenizer: pieces: expected one for each byte, found none for byte 7");
  EXPECT_EQ(refusal([](auto& tables) { tables.pieces[258] = "a b"; }),
            "tokenizer: piece 258: expected characters of GPT-2's alphabet of bytes, found "
            "\"a b\"");
  for (const std::pair<uint32_t, uint32_t> merge :
       {std::pair(99u, 'b'), std::pair(256u, 'b'), std::pair(261u, 'b')}) {
    EXPECT_EQ(refusal([&](auto& tables) { tables.merges.push_back(merge); }),
              "tokenizer: merge 4: expected two pieces that together are a piece, found another "
              "pair");
  }
  EXPECT_EQ(refusal([](auto& tables) { tables.merges.push_back(tables.merges[0]); }),
            "tokenizer: merges: expected each once, found one twice");
  for (const auto& marks : {std::vector<uint32_t>{256, 256}, {257, 256}, {256, 261}}) {
    EXPECT_EQ(refusal([&](auto& tables) { tables.marks = marks; }),
              "tokenizer: marks: expected ascending ids of pieces, found another list");
  }
  EXPECT_EQ(refusal([&](auto& tables) { tables.spelled_marks = {257}; }),
            "tokenizer: marks: expected ascending ids of pieces, found another list");
}

TEST(TextTables, ModelFilesHoldThem) {
  ModelDraft draft = TinyMicronet();
  draft.tokenizer = Pieces();
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_NE((*file)->text_tables(), nullptr);
  EXPECT_TRUE(*(*file)->text_tables() == *draft.tokenizer);
  EXPECT_EQ((*file)->ledger().Total(LedgerPart::kTokenizer), PackTextTables(Pieces())->size());
  draft.vocabulary.clear();
  EXPECT_FALSE(SerialiseModel(draft).ok());
}

}  // namespace
}  // namespace kinglet::text_tables_test
