#include "runtime/spellings.h"

#include <gtest/gtest.h>

#include "tests/runtime/session_fixture.h"

namespace kinglet::spellings_test {
namespace {

Spellings SpellingsOf(const std::vector<std::string>& words, std::optional<TextTables> tokenizer) {
  ModelDraft draft = TinyMicronet();
  for (size_t i = 0; i < draft.vocabulary.size(); ++i) {
    draft.vocabulary[i] = i < words.size() ? words[i] : "q" + std::to_string(i);
  }
  draft.tokenizer = std::move(tokenizer);
  return Spellings::Of(*Model::FromBytes(SerialiseModel(draft).value(), {}).value()).value();
}

TEST(Spellings, WordsHaveASpaceBeforeThem) {
  const Spellings words = SpellingsOf({"the", "<eos>", "<unk>", "then"}, std::nullopt);
  EXPECT_EQ(words.Text(0, Before::kWord), " the");
  EXPECT_EQ(words.Text(0, Before::kJoined), "the");
  EXPECT_EQ(words.Text(1, Before::kWord), "\n");
  EXPECT_TRUE(words.SpellsNothing(2));
  EXPECT_EQ(words.After(1), Before::kLineStart);
  EXPECT_EQ(words.After(2), Before::kWord);
  const auto found = words.Of(" then", Before::kWord);
  EXPECT_EQ(found.whole, std::vector<uint32_t>{3});
  ASSERT_EQ(found.parts.size(), 1u);
  EXPECT_EQ(found.parts[0].id, 0u);
  EXPECT_EQ(found.parts[0].length, 4u);
  EXPECT_TRUE(words.Of("then", Before::kWord).whole.empty());
  EXPECT_EQ(words.Of("the", Before::kJoined).whole, (std::vector<uint32_t>{0, 3}));
  EXPECT_TRUE(words.Of("\xFF", Before::kJoined).whole.empty());
}

TEST(Spellings, PiecesJoinAsTheTokenizerJoinsThem) {
  const Spellings merges = SpellingsOf({"a@@", "b", "a"}, TextTables{false, MergeTables{}});
  EXPECT_EQ(merges.Text(0, Before::kWord), " a");
  EXPECT_EQ(merges.After(0), Before::kJoined);
  EXPECT_EQ(merges.After(1), Before::kWord);
  EXPECT_EQ(merges.Of("a", Before::kJoined).whole,
            (std::vector<uint32_t>{0, 2}));  // two of one spelling
  EXPECT_EQ(merges.Of("ab", Before::kJoined).parts.size(), 2u);
}

// The tokenizer splits "didn't" into didn and 't.
TEST(Spellings, WhatAWordRuleSplitsOffIsWrittenTogether) {
  const Spellings words = SpellingsOf({"didn", "'t", "'", "@-@"},
                                      TextTables{false, WordRule{WordRule::Rule::kWikiText}});
  EXPECT_EQ(words.Text(1, Before::kWord), "'t");
  EXPECT_EQ(words.Text(2, Before::kWord), " '");
  EXPECT_EQ(words.Text(3, Before::kWord), "-");
  EXPECT_EQ(words.Of("'", Before::kWord).whole, std::vector<uint32_t>{1});
}

// A file stores a beginning that words share once: 73 MB of texts in 100 kB.
TEST(Spellings, AreBoundedAndClaimed) {
  ModelDraft draft = TinyMicronet({.vocabulary_size = 1200});
  const std::string shared(61000, 'a');
  const auto claimed = [&](size_t many) -> Status {
    for (size_t i = 0; i < draft.vocabulary.size(); ++i) {
      draft.vocabulary[i] = (i < many ? shared : "") + std::to_string(i);
    }
    const auto model = Model::FromBytes(*SerialiseModel(draft), {}).value();
    const uint64_t left = model->budget()->left();
    const auto spellings = Spellings::Of(*model);
    if (!spellings.ok()) return spellings.status();
    EXPECT_GE(left - model->budget()->left(), many * shared.size());
    return spellings.status();
  };
  EXPECT_TRUE(claimed(20).ok());
  EXPECT_EQ(claimed(1200).code(), KINGLET_UNSUPPORTED);

  for (std::string& word : draft.vocabulary) word.erase(0, word.size() > 1000 ? shared.size() : 0);
  const auto model = Model::FromBytes(*SerialiseModel(draft), {}).value();
  const uint64_t left = model->budget()->left();
  ASSERT_TRUE(model->budget()->Claim(left - 1000));
  EXPECT_EQ(Spellings::Of(*model).status().code(), KINGLET_OUT_OF_MEMORY);
}

TEST(Spellings, AreClaimedFromTheModelsMemory) {
  const auto bytes = SerialiseModel(TinyMicronet()).value();
  const auto used = [](const Model& model) {
    return model.budget()->limit() - model.budget()->left();
  };
  const auto free = Model::FromBytes(bytes, {}).value();
  const uint64_t opened = used(*free);
  uint64_t claimed = 0;
  {
    const auto made = Spellings::Of(*free);
    ASSERT_TRUE(made.ok());
    claimed = used(*free) - opened;
    EXPECT_GT(claimed, free->vocabulary()->word_bytes() + 23 * sizeof(Spelling));
  }
  EXPECT_EQ(used(*free), opened);
  for (const uint64_t less : {0u, 1u}) {
    ModelOptions options;
    options.memory_limit = opened + claimed - less;
    const auto made = Spellings::Of(*Model::FromBytes(bytes, options).value());
    EXPECT_EQ(made.status().code(), less == 0 ? KINGLET_OK : KINGLET_OUT_OF_MEMORY);
  }
}

}  // namespace
}  // namespace kinglet::spellings_test
