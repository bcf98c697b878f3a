#include "format/validate_masked.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "format/model_file.h"
#include "tests/support/masked_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/unpack.h"

namespace kinglet::validate_masked_test {
namespace {

ModelDraft GoodDraft() {
  ModelDraft draft = TinyMasked({.scores = 3});
  GoldenVector golden = {{2, 9, 3, 13, 3}, {-1.0, -2.0}, 1e-4};
  golden.segments = {0, 0, 0, 1, 1};
  golden.positions = {1, 3};
  golden.mask = 4;
  draft.description.golden = golden;
  return draft;
}

MaskedModel& Masked(ModelDraft& draft) { return *FindBlock<MaskedModel>(draft.description); }

GoldenVector& Golden(ModelDraft& draft) { return *draft.description.golden; }

TEST(ValidateMasked, AWholeModelIsReadAsWritten) {
  const ModelDraft draft = GoodDraft();
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = *ModelFile::FromBytes(*bytes);
  const auto *read = FindBlock<MaskedModel>(file->description()),
             *written = FindBlock<MaskedModel>(draft.description);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->name, "text");
  EXPECT_EQ(SegmentsOf(*read), 2u);
  EXPECT_EQ(read->segments.bins[0].table, written->segments.bins[0].table);
  EXPECT_EQ(read->norm_gain, written->norm_gain);
  EXPECT_EQ(read->norm_bias, written->norm_bias);
  EXPECT_EQ(read->stack.layers.size(), 2u);
  EXPECT_EQ(read->stack.activation, Activation::kGelu);
  ASSERT_TRUE(read->pooler.has_value());
  EXPECT_EQ(read->pooler->weight, written->pooler->weight);
  EXPECT_EQ(read->pooler->activation, Activation::kTanh);
  ASSERT_TRUE(read->scores.has_value());
  EXPECT_EQ(read->scores->bias, written->scores->bias);
  EXPECT_EQ(read->scored, ScoredPart::kClasses);
  const auto* transform = FindDenseLayers(file->description(), DensePlace::kOutput);
  ASSERT_NE(transform, nullptr);
  EXPECT_TRUE(transform->layers[0].norm_last);
  EXPECT_FALSE(IsLanguageModel(file->description()));
  EXPECT_TRUE(IsMaskedModel(file->description()));
  const GoldenVector& golden = *file->description().golden;
  EXPECT_EQ(golden.segments, draft.description.golden->segments);
  EXPECT_EQ(golden.positions, draft.description.golden->positions);
  EXPECT_EQ(golden.mask, 4u);
  EXPECT_EQ(*SerialiseModel(UnpackModel(*file)), *bytes);
}

TEST(ValidateMasked, FormsThatMayBe) {
  for (const TinyMaskedOptions& options :
       {TinyMaskedOptions{.words = false}, TinyMaskedOptions{.pooler = false},
        TinyMaskedOptions{.words = false, .scores = 1},
        TinyMaskedOptions{.scores = 2, .scored = ScoredPart::kNextSentence},
        TinyMaskedOptions{
            .words = false, .pooler = false, .scores = 2, .scored = ScoredPart::kSpans},
        TinyMaskedOptions{.segments = 1, .layers = 1, .window = 1}}) {
    const auto bytes = SerialiseModel(TinyMasked(options));
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  }
}

TEST(ValidateMasked, OnlyMaskedModelsHaveGoldenTexts) {
  ModelDraft draft = TinyTransformer();
  draft.description.golden = GoldenVector{{1, 2}, {-1.0}, 1e-4};
  EXPECT_TRUE(SerialiseModel(draft).ok());
  Golden(draft).mask = 1;
  EXPECT_NE(SerialiseModel(draft).status().message().find("which masked models have"),
            std::string::npos);
}

TEST(ValidateMasked, Refusals) {
  struct Case {
    const char* message;
    std::function<void(ModelDraft&)> change;
  };
  const Case cases[] = {
      {"block text, stack, norm order: expected the norm last, found another",
       [](ModelDraft& draft) { Masked(draft).stack.norm_order = NormOrder::kPre; }},
      {"block text, stack, masked token: expected none, found one",
       [](ModelDraft& draft) { Masked(draft).stack.masked_token = 3; }},
      {"block text, stack, final norm: expected none, found one",
       [](ModelDraft& draft) {
         MaskedModel& model = Masked(draft);
         model.stack.final_norm_gain = model.norm_gain;
         model.stack.final_norm_bias = model.norm_bias;
       }},
      {"block text, segments, bins: expected one, found another number",
       [](ModelDraft& draft) { Masked(draft).segments.bins.clear(); }},
      {"block text, segments, width: expected the stack's 8, found 4",
       [](ModelDraft& draft) { Masked(draft).segments.width = 4; }},
      {"block text, bin 0, table: expected shape [3, 8], found [2, 8] of tensor segments",
       [](ModelDraft& draft) { Masked(draft).segments.bins[0].size = 3; }},
      {"block text, embedding, norm_gain: expected shape [8], found [2, 8] of tensor segments",
       [](ModelDraft& draft) { Masked(draft).norm_gain = Masked(draft).segments.bins[0].table; }},
      {"block text, pooler: expected one before scores, found none",
       [](ModelDraft& draft) { Masked(draft).pooler.reset(); }},
      {"block text, pooler: expected none, as spans are scored, found one",
       [](ModelDraft& draft) { Masked(draft).scored = ScoredPart::kSpans; }},
      {"block text, scores, rows of weight: expected 2, found 3",
       [](ModelDraft& draft) { Masked(draft).scored = ScoredPart::kNextSentence; }},
      {"blocks: expected no decoder, encoder, cache or input layers in a masked model, found "
       "some",
       [](ModelDraft& draft) {
         draft.description.blocks.emplace_back(NeuralCache{"cache", 5, 0.5, 0.5});
       }},
      {"blocks: expected dense output layers before a masked model's softmax, found none",
       [](ModelDraft& draft) {
         auto& blocks = draft.description.blocks;
         blocks.erase(blocks.begin() + 2);
       }},
      {"blocks: expected at most one adaptive softmax, found 2",
       [](ModelDraft& draft) {
         auto& blocks = draft.description.blocks;
         blocks.erase(blocks.begin() + 2);
         blocks.push_back(blocks.back());
       }},
      {"blocks: expected exactly one adaptive softmax, found 0",
       [](ModelDraft& draft) { draft.description.blocks.pop_back(); }},
      {"golden vector, log-probabilities: expected 2, found 1",
       [](ModelDraft& draft) { Golden(draft).log_probabilities.pop_back(); }},
      {"golden vector, ids: expected at most 9, found 10",
       [](ModelDraft& draft) { Golden(draft).ids.resize(10); }},
      {"golden vector, source ids: expected none, found 1",
       [](ModelDraft& draft) { Golden(draft).source_ids = {1}; }},
      {"golden vector, segments: expected 5 or none, found 4",
       [](ModelDraft& draft) { Golden(draft).segments.pop_back(); }},
      {"golden vector, segment 4: expected a number below 2, found 2",
       [](ModelDraft& draft) { Golden(draft).segments[4] = 2; }},
      {"golden vector, position 1: expected a number below 5, found 5",
       [](ModelDraft& draft) { Golden(draft).positions[1] = 5; }},
      {"golden vector, positions: expected ascending positions, found others",
       [](ModelDraft& draft) {
         Golden(draft).positions = {3, 3};
       }},
      {"golden vector, positions: expected at least one, found none",
       [](ModelDraft& draft) {
         Golden(draft).positions.clear();
         Golden(draft).log_probabilities.clear();
       }},
      {"golden vector, mask: expected an id below 17, found 17",
       [](ModelDraft& draft) { Golden(draft).mask = 17; }},
      {"golden vector, mask: expected an id below 17, found none",
       [](ModelDraft& draft) { Golden(draft).mask.reset(); }},
      {"golden vector: expected none, as the model predicts no words, found one",
       [](ModelDraft& draft) {
         draft.description.blocks.pop_back();
         draft.description.blocks.pop_back();
       }},
      {"start token: expected none, as the model predicts no words, found one",
       [](ModelDraft& draft) { draft.description.start_token = 2; }},
  };
  for (const Case& each : cases) {
    ModelDraft draft = GoodDraft();
    each.change(draft);
    const auto bytes = SerialiseModel(draft);
    ASSERT_FALSE(bytes.ok()) << each.message;
    EXPECT_TRUE(bytes.status().message().ends_with(each.message)) << bytes.status().message();
  }
}

}  // namespace
}  // namespace kinglet::validate_masked_test
