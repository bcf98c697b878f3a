#include "format/ledger.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "format/model_file.h"
#include "tests/support/model_builder.h"

namespace kinglet::ledger_test {
namespace {

TEST(LedgerTest, AccountsForEveryByte) {
  for (bool quantised : {false, true}) {
    for (bool pruned : {false, true}) {
      const auto bytes = SerialiseModel(
          TinyMicronet({.quantised = quantised, .pruned = pruned, .vocabulary_size = 61}));
      ASSERT_TRUE(bytes.ok());
      const auto model = ModelFile::FromBytes(*bytes);
      ASSERT_TRUE(model.ok()) << model.status().message();
      const Ledger& ledger = (*model)->ledger();
      uint64_t position = 0, by_part = 0;
      for (const LedgerEntry& entry : ledger.entries) {
        EXPECT_EQ(entry.offset, position);
        EXPECT_GT(entry.bytes, 0u);
        position += entry.bytes;
        const bool unowned = entry.part == LedgerPart::kFrame ||
                             entry.part == LedgerPart::kHeader ||
                             entry.part == LedgerPart::kPadding;
        EXPECT_EQ(entry.owner.empty(), unowned);
      }
      EXPECT_EQ(position, bytes->size());
      EXPECT_EQ(ledger.Total(), bytes->size());
      for (int part = 0; part <= static_cast<int>(LedgerPart::kPadding); ++part) {
        by_part += ledger.Total(static_cast<LedgerPart>(part));
      }
      EXPECT_EQ(by_part, bytes->size());
    }
  }
}

TEST(LedgerTest, PartsHaveNames) {
  std::set<std::string> names;
  for (int part = 0; part <= static_cast<int>(LedgerPart::kPadding); ++part) {
    names.insert(LedgerPartName(static_cast<LedgerPart>(part)));
  }
  EXPECT_EQ(names, (std::set<std::string>{"frame", "header", "values", "codes", "scales", "mask",
                                          "vocabulary", "tokenizer", "padding"}));
}

TEST(LedgerTest, PartsHaveThePredictedSizes) {
  // 3 x 5 entries of 9 bits: ceil(135 / 8) = 17 bytes; scales 1, 2, 4: words 0x7F, 0x80, 0x81 after
  // 23 bits, 8 bits each.
  ModelDraft draft = TinyMicronet();
  Quantised values{9, ScaleRule::kMultiplyPerRow, std::vector<int16_t>(15, -3), {1, 2, 4}};
  values.codes[4] = 0;
  draft.tensors.push_back({"extra", {3, 5}, values, true});
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto model = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::set<std::pair<std::string, uint64_t>> parts;
  for (const LedgerEntry& entry : (*model)->ledger().entries) {
    if (entry.owner == "extra") parts.insert({LedgerPartName(entry.part), entry.bytes});
  }
  EXPECT_EQ(parts, (std::set<std::pair<std::string, uint64_t>>{
                       {"mask", 2}, {"codes", 16}, {"scales", 3}}));
}

}  // namespace
}  // namespace kinglet::ledger_test
