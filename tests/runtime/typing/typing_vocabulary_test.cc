#include "runtime/typing/typing_vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/typing/typing_fixture.h"

namespace kinglet::typing {
namespace {

TEST(TypingVocabulary, RefusesModelsWithoutWords) {
  TinyOptions ids_only;
  ids_only.vocabulary = false;
  EXPECT_EQ(TypingVocabulary::Of(Open(TinyMicronet(ids_only), "cpu")).status().code(),
            KINGLET_UNSUPPORTED);
  const auto backward =
      TypingVocabulary::Of(ModelOf({"a", "b", "<unk>"}, TextTables{false, WordRule{}, true}));
  EXPECT_EQ(backward.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_NE(backward.status().message().find("from its end"), std::string::npos);
}

TEST(TypingVocabulary, ClaimsItsMemory) {
  const std::shared_ptr<const Model> model = ModelOf(MadeUpWords(300));
  const uint64_t left = model->budget()->left();
  {
    const auto words = *TypingVocabulary::Of(model);
    EXPECT_LT(model->budget()->left(), left);
  }
  EXPECT_EQ(model->budget()->left(), left);
  // Nearly all of it is claimed already.
  const auto claim = ClaimMemory(model->budget(), left - 10000, "test", "rest");
  ASSERT_TRUE(claim.ok());
  EXPECT_EQ(TypingVocabulary::Of(model).status().code(), KINGLET_OUT_OF_MEMORY);
}

TEST(TypingVocabulary, SharesOfUnknownWordsLeaveOutTheListed) {
  const auto words = WordsOf(MadeUpWords(300));
  EXPECT_GT(words->LogShareOfUnknown(U"thing"), words->LogShareOfUnknown(U"xqzzy"));
  EXPECT_EQ(words->unknown(), 2u);
}

}  // namespace
}  // namespace kinglet::typing
