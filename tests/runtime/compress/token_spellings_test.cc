#include "runtime/compress/token_spellings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::token_spellings_test {
namespace {

std::map<std::string, uint32_t> AllOf(const TokenSpellings& spellings) {
  std::map<std::string, uint32_t> all;
  std::string before;
  for (uint32_t rank = 0; rank < spellings.size(); ++rank) {
    std::string text;
    for (uint32_t i = 0; i < spellings.LengthOf(rank); ++i) {
      text += static_cast<char>(spellings.ByteAt(rank, i));
    }
    EXPECT_LT(before, text);
    before = text;
    all[text] = spellings.IdOf(rank);
  }
  return all;
}

TEST(TokenSpellings, WordsStandForThemselvesAndTheEndOfALineForANewline) {
  const auto model = TinyWords();
  EXPECT_EQ(StylesOf(*model), (std::vector{TokenStyle::kSpaced, TokenStyle::kTyped}));
  const auto spaced = AllOf(TokenSpellings(*model, TokenStyle::kSpaced));
  EXPECT_EQ(spaced.size(), model->vocabulary_size());
  EXPECT_EQ(spaced.at("\n"), 1u);
  EXPECT_EQ(spaced.at("<unk>"), 2u);
  EXPECT_EQ(spaced.at("w3"), 3u);
  EXPECT_EQ(AllOf(TokenSpellings(*model, TokenStyle::kTyped)).count("<unk>"), 0u);
}

TEST(TokenSpellings, SpacesArePartsOfPieces) {
  ModelDraft draft = TinyMicronet();
  draft.tokenizer = TextTables{false, MergeTables{}};
  const auto model = Open(draft, "cpu");
  EXPECT_EQ(StylesOf(*model), std::vector{TokenStyle::kPieces});
  const auto pieces = AllOf(TokenSpellings(*model, TokenStyle::kPieces));
  EXPECT_EQ(pieces.at("\n"), 1u);
}

TEST(TokenSpellings, FindRanges) {
  const auto model = TinyWords();
  const TokenSpellings spellings(*model, TokenStyle::kSpaced);
  const uint32_t from = spellings.FirstFrom(spellings.all(), 0, 'w');
  const uint32_t to = spellings.FirstFrom(spellings.all(), 0, 'w' + 1);
  EXPECT_EQ(to - from, model->vocabulary_size() - 3);
  EXPECT_EQ(spellings.FirstFrom(spellings.all(), 0, 256), spellings.size());
}

}  // namespace
}  // namespace kinglet::compress::token_spellings_test
