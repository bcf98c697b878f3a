#include "runtime/special_tokens.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace kinglet::special_tokens_test {
namespace {

std::shared_ptr<const Model> ModelOf(const ModelDraft& draft) {
  return *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(draft)), {});
}

TEST(SpecialTokens, AreFoundByTheirSpelling) {
  ModelDraft draft = TinyMicronet();  // the, <eos>, <unk>
  const SpecialTokens tokens = SpecialTokensOf(*ModelOf(draft));
  EXPECT_EQ(tokens.unknown, 2u);
  EXPECT_EQ(tokens.begin, 1u);
  EXPECT_EQ(tokens.end_of_line, 1u);
  for (const char* end : {"</s>", "<sos/eos>", "\n"}) {
    draft.vocabulary[1] = end;
    EXPECT_EQ(SpecialTokensOf(*ModelOf(draft)).end_of_line, 1u) << end;
  }
  draft.vocabulary[1] = "eos";
  draft.vocabulary[2] = "unk";
  const SpecialTokens none = SpecialTokensOf(*ModelOf(draft));
  EXPECT_FALSE(none.unknown || none.begin || none.end_of_line);
}

TEST(SpecialTokens, TheModelsOwnTokensComeFirst) {
  ModelDraft draft = TinyMicronet();
  draft.description.start_token = 4;
  draft.description.end_token = 5;
  const SpecialTokens tokens = SpecialTokensOf(*ModelOf(draft));
  EXPECT_EQ(tokens.begin, 4u);
  EXPECT_EQ(tokens.end_of_line, 5u);
}

TEST(SpecialTokens, IdsAloneHaveNoUnknownToken) {
  TinyOptions options;
  options.vocabulary = false;
  const auto model = ModelOf(TinyMicronet(options));
  EXPECT_FALSE(SpecialTokensOf(*model).unknown);
  EXPECT_EQ(UnknownTokenOf(*model, "query").status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(*UnknownTokenOf(*ModelOf(TinyMicronet()), "query"), 2u);
}

}  // namespace
}  // namespace kinglet::special_tokens_test
