#include "runtime/masked_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/masked_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::masked_text_test {
namespace {

std::shared_ptr<const Model> Open(const ModelDraft& draft) {
  return *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(draft)), {});
}

TEST(MaskedText, ATokenIsMaskedAlone) {
  const auto model = Open(TinyMasked());
  const auto tokens = MaskTokensOf(*model, "test");
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ(tokens->mask, 4u);
  EXPECT_TRUE(IsScored(1, *tokens));
  EXPECT_FALSE(IsScored(2, *tokens));
  EXPECT_FALSE(IsScored(3, *tokens));
  const auto session = *Session::Create(model);
  const MaskedText text = {{2, 9, 13, 3}, {0, 0, 1, 1}};
  const auto found = MaskedLogProbability(text, 2, tokens->mask, *session);
  ASSERT_TRUE(found.ok()) << found.status().message();
  const std::vector<uint32_t> masked = {2, 9, 4, 3};
  ASSERT_TRUE(session->Encode(masked, text.segments, 0).ok());
  ASSERT_TRUE(session->LookAt(2).ok());
  EXPECT_EQ(*found, *session->LogProbability(13));
}

TEST(MaskedText, NeedsAMaskedModelWithItsTokens) {
  const auto message = [](const ModelDraft& draft) {
    return MaskTokensOf(*Open(draft), "m.kgl").status().message();
  };
  EXPECT_EQ(message(TinyTransformer()),
            "m.kgl: model: expected one that predicts masked words, found another kind of model");
  EXPECT_EQ(message(TinyMasked({.words = false})),
            "m.kgl: model: expected one that predicts masked words, found a masked model without "
            "that part");
  EXPECT_EQ(message(TinyMasked({.vocabulary = false})),
            "m.kgl: model: expected the word [MASK] (convert --vocab vocab.txt), found ids only");
  ModelDraft draft = TinyMasked();
  draft.vocabulary[3] = "sep";
  EXPECT_EQ(message(draft),
            "m.kgl: model: expected the word [SEP] (convert --vocab vocab.txt), found none");
}

}  // namespace
}  // namespace kinglet::masked_text_test
