#include "runtime/special_words.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace kinglet::special_words_test {
namespace {

std::shared_ptr<const Model> ModelOf(const ModelDraft& draft) {
  return *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(draft)), {});
}

TEST(SpecialWords, AreFoundByTheirSpelling) {
  ModelDraft draft = TinyMicronet();  // the, <eos>, <unk>
  const SpecialWords words = SpecialWordsOf(*ModelOf(draft));
  EXPECT_EQ(words.unknown, 2u);
  EXPECT_EQ(words.begin, 1u);
  EXPECT_EQ(words.end_of_line, 1u);
  for (const char* end : {"</s>", "<sos/eos>", "\n"}) {
    draft.vocabulary[1] = end;
    EXPECT_EQ(SpecialWordsOf(*ModelOf(draft)).end_of_line, 1u) << end;
  }
  draft.vocabulary[1] = "eos";
  draft.vocabulary[2] = "unk";
  const SpecialWords none = SpecialWordsOf(*ModelOf(draft));
  EXPECT_FALSE(none.unknown || none.begin || none.end_of_line);
}

TEST(SpecialWords, TheModelsOwnTokensComeFirst) {
  ModelDraft draft = TinyMicronet();
  draft.description.start_token = 4;
  draft.description.end_token = 5;
  const SpecialWords words = SpecialWordsOf(*ModelOf(draft));
  EXPECT_EQ(words.begin, 4u);
  EXPECT_EQ(words.end_of_line, 5u);
}

TEST(SpecialWords, IdsAloneHaveNoUnknownWord) {
  TinyOptions options;
  options.vocabulary = false;
  const auto model = ModelOf(TinyMicronet(options));
  EXPECT_FALSE(SpecialWordsOf(*model).unknown);
  EXPECT_EQ(UnknownWordOf(*model, "query").status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(*UnknownWordOf(*ModelOf(TinyMicronet()), "query"), 2u);
}

}  // namespace
}  // namespace kinglet::special_words_test
