// The memory of tables and texts, counted allocation by allocation, against the memory claimed
// first.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/text_tables.h"
#include "runtime/text/merge_queue.h"
#include "runtime/text/tokenizer.h"
#include "tests/support/counted_memory.h"

namespace kinglet::text_memory_test {
namespace {

using Pieces = SentencePieceTables;

// Distinct texts of `bytes` bytes or more.
std::string Text(uint32_t number, size_t bytes) {
  std::string text;
  do {
    text += static_cast<char>('a' + number % 26);
    number /= 26;
  } while (number > 0);
  return text.size() < bytes ? text + "|" + std::string(bytes - text.size(), 'x') : text;
}

TextTables PiecesOf(Pieces::Algorithm algorithm, uint32_t count, size_t bytes, Pieces::Type type) {
  Pieces tables;
  tables.algorithm = algorithm;
  tables.pieces.push_back({"<unk>", 0, Pieces::Type::kUnknown});
  for (uint32_t i = 0; i < count; ++i) {
    tables.pieces.push_back({Text(i, bytes), -static_cast<float>(i), type});
  }
  return {false, tables};
}

TextTables Rules(uint32_t count) {
  TextTables tables = PiecesOf(Pieces::Algorithm::kUnigram, 10, 1, Pieces::Type::kNormal);
  auto& rules = std::get<Pieces>(tables.method).normaliser.rules;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string digits = std::to_string(1000000 + i);
    rules.push_back({digits, Text(i, 3)});
  }
  return tables;
}

TextTables Merges(uint32_t count, size_t bytes) {
  MergeTables merges;
  for (uint32_t i = 0; i < count; ++i)
    merges.merges.emplace_back(Text(i, bytes), Text(i + 1, bytes));
  return {false, merges};
}

TextTables WordPiecesOf(uint32_t count, const std::string& mark) {
  WordPieceTables tables;
  tables.pieces.push_back("[UNK]");
  for (uint32_t i = 0; i < count; ++i) tables.pieces.push_back(mark + Text(i, 1));
  return {false, tables};
}

std::vector<TextTables> Tables() {
  using Algorithm = Pieces::Algorithm;
  using Type = Pieces::Type;
  return {PiecesOf(Algorithm::kUnigram, 3000, 1, Type::kNormal),
          PiecesOf(Algorithm::kUnigram, 300, 1000, Type::kNormal),
          PiecesOf(Algorithm::kUnigram, 3000, 1, Type::kUserDefined),
          PiecesOf(Algorithm::kBpe, 3000, 1, Type::kNormal),
          PiecesOf(Algorithm::kBpe, 3000, 20, Type::kUnused),
          Rules(5000),
          Merges(3000, 1),
          Merges(3000, 20),
          Merges(300, 1000),
          WordPiecesOf(3000, ""),
          WordPiecesOf(3000, "##")};
}

TEST(TextMemory, MakingATokenizerTakesNoMoreThanIsClaimed) {
  for (const TextTables& tables : Tables()) {
    TextTables copy = tables;
    const CountedMemory memory;
    const auto tokenizer = Tokenizer::Create(std::move(copy));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    // The copy was made before.
    EXPECT_LE(memory.Peak() + HeldBytes(tables), Tokenizer::BytesOf(tables) + 4096)
        << TextTablesName(tables) << " " << Tokenizer::SizeOf(tables);
    const std::vector<std::byte> packed = *PackTextTables(tables);
    EXPECT_LE(Tokenizer::BytesOf(tables), 96 * packed.size() + 65536) << TextTablesName(tables);
  }
}

TEST(TextMemory, ReadingTablesTakesNoMoreThanTheyHold) {
  for (const TextTables& tables : Tables()) {
    const std::vector<std::byte> packed = *PackTextTables(tables);
    const CountedMemory memory;
    const auto read = ReadTextTables(packed);
    ASSERT_TRUE(read.ok());
    EXPECT_LE(memory.Peak(), HeldBytes(tables) + 4096) << TextTablesName(tables);
    EXPECT_LE(HeldBytes(tables), 48 * packed.size() + 65536) << TextTablesName(tables);
    // Nothing is taken beyond a limit.
    const CountedMemory within;
    const auto refused = ReadTextTables(packed, HeldBytes(tables) / 2);
    EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY) << refused.status().message();
    EXPECT_LE(within.Peak(), HeldBytes(tables) / 2 + 4096);
  }
}

TEST(TextMemory, TokenizingTakesNoMoreThanIsClaimed) {
  std::vector<std::string> texts = {std::string(20000, 'a'), std::string(20000, ' ')};
  for (const char* unit : {"ab ", "a b c d ", "q\xC3\xA9", "\xF0\x9F\x98\x80", "\xFF", "aab?!, "}) {
    std::string& text = texts.emplace_back();
    while (text.size() < 20000) text += unit;
  }
  std::vector<TextTables> tables = Tables();
  for (const auto rule :
       {WordRule::Rule::kSpaces, WordRule::Rule::kWikiText, WordRule::Rule::kCharacters}) {
    tables.push_back({true, WordRule{rule}});
  }
  TextTables bytes = PiecesOf(Pieces::Algorithm::kCharacter, 0, 1, Pieces::Type::kNormal);
  std::get<Pieces>(bytes.method).byte_fallback = true;
  for (int value = 0; value < 256; ++value) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    std::get<Pieces>(bytes.method)
        .pieces.push_back({std::string("<0x") + kDigits[value / 16] + kDigits[value % 16] + ">", 0,
                           Pieces::Type::kByte});
  }
  tables.push_back(bytes);
  for (const TextTables& of : tables) {
    const auto tokenizer = *Tokenizer::Create(of);
    for (const std::string& text : texts) {
      const auto budget = std::make_shared<MemoryBudget>(uint64_t{1} << 30);
      const CountedMemory memory;
      const auto tokenized = tokenizer->Encode(text, budget);
      ASSERT_TRUE(tokenized.ok());
      const uint64_t claimed = budget->limit() - budget->left();
      EXPECT_GE(claimed, memory.Peak())
          << TextTablesName(of) << ", " << Tokenizer::SizeOf(of) << " pieces, " << text.substr(0, 9)
          << ": " << static_cast<double>(memory.Peak()) / static_cast<double>(text.size());
    }
  }
}

TEST(TextMemory, TheClaimIsTheAnswersAndRefusedFirst) {
  const auto tokenizer = *Tokenizer::Create({false, WordRule{WordRule::Rule::kSpaces}});
  const auto budget = std::make_shared<MemoryBudget>(100 * kTokenizerBytes);
  {
    const auto tokenized = tokenizer->Encode("a b", budget);
    ASSERT_TRUE(tokenized.ok());
    EXPECT_EQ(budget->left(), 97 * kTokenizerBytes);
  }
  EXPECT_EQ(budget->left(), budget->limit());
  const CountedMemory memory;
  const auto refused = tokenizer->Encode(std::string(101, 'a'), budget);
  EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_LT(memory.Peak(), 1000u);
  EXPECT_EQ(budget->left(), budget->limit());
}

// Rules that make 255 spaces, each of three bytes, of every byte.
TEST(TextMemory, RulesThatMultiplyAreRefused) {
  TextTables tables = PiecesOf(Pieces::Algorithm::kUnigram, 10, 1, Pieces::Type::kNormal);
  auto& normaliser = std::get<Pieces>(tables.method).normaliser;
  normaliser.escape = true;
  normaliser.rules.push_back({"a", std::string(255, ' ')});
  const auto tokenizer = *Tokenizer::Create(tables);
  EXPECT_TRUE(tokenizer->Encode("aaaa").ok());
  const std::string text(20000, 'a');
  const CountedMemory memory;
  const auto refused = tokenizer->Encode(text);
  EXPECT_EQ(refused.status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_LT(memory.Peak(), 32 * 20 * text.size());
  const auto budget = std::make_shared<MemoryBudget>(text.size() * kTokenizerBytes);
  const CountedMemory within;
  EXPECT_EQ(tokenizer->Encode(text, budget).status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_LT(within.Peak(), budget->limit());
}

}  // namespace
}  // namespace kinglet::text_memory_test
