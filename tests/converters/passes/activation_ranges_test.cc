#include "converters/passes/activation_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "converters/passes/calibrate.h"
#include "tests/converters/opened.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::activation_ranges_test {
namespace {

void Fill(ModelDraft& draft, const std::string& name, float value) {
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name != name) continue;
    std::get<DenseF32>(tensor.values).values.assign(Count(tensor.shape), value);
    return;
  }
  FAIL() << name;
}

void SetEntry(ModelDraft& draft, const std::string& name, size_t index, float value) {
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name == name) std::get<DenseF32>(tensor.values).values.at(index) = value;
  }
}

// All matrices of the decoder are zero, so every activation is a bias that the test has chosen.
ModelDraft TransparentModel() {
  ModelDraft draft = TinyMicronet({.bins = 1, .layers = 2});
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const char* name :
         {"ln1.weight", "ln1.bias", "qkv.weight", "qkv.bias", "out.weight", "ln2.weight",
          "ln2.bias", "fc.0.weight", "fc.0.bias", "fc.3.weight", "fc.3.bias"}) {
      Fill(draft, layer + name, 0);
    }
  }
  Fill(draft, "loss.layers.0.weight", 0);
  return draft;
}

// With post-norm, a sublayer reads the residual stream. Attention queries include the content bias.
TEST(MeasureRanges, FindsThePointsOfEveryForm) {
  using TP = TinyPositions;
  for (const TP positions : {TP::kRelative, TP::kAbsolute}) {
    for (const bool pre : {false, true}) {
      ModelDraft draft = TinyTransformer({.positions = positions,
                                          .norm_order = pre ? NormOrder::kPre : NormOrder::kPost,
                                          .biases = true,
                                          .final_norm = true});
      for (const std::string layer : {"layers.0.", "layers.1."}) {
        for (const char* name : {"attention_norm.weight", "attention_norm.bias", "qkv", "qkv.bias",
                                 "out", "out.bias", "inner_norm.weight", "inner_norm.bias", "inner",
                                 "inner.bias", "outer", "outer.bias"}) {
          Fill(draft, layer + name, 0);
        }
      }
      Fill(draft, "word_emb", 0);
      Fill(draft, "norm.weight", 0);
      Fill(draft, "norm.bias", -9);
      SetEntry(draft, "layers.0.inner_norm.bias", 1, 3.5F);
      SetEntry(draft, "layers.1.attention_norm.bias", 1, 1.5F);
      SetEntry(draft, "layers.1.inner_norm.bias", 1, 2.5F);
      SetEntry(draft, "layers.1.qkv.bias", 0, -4.0F);
      if (positions == TP::kRelative) {
        Fill(draft, "layers.1.r_w_bias", 0);
        SetEntry(draft, "layers.1.r_w_bias", 0, -2.0F);
      }
      const auto ranges = MeasureRanges(Opened(draft), std::vector<uint32_t>{1, 4, 2});
      ASSERT_TRUE(ranges.ok()) << ranges.status().message();
      const LayerRanges& layer = ranges->layers[1];
      EXPECT_EQ(layer.attention_input, pre ? 1.5F : 3.5F);
      EXPECT_EQ(layer.inner_input, pre ? 2.5F : 1.5F);
      EXPECT_EQ(layer.qkv, positions == TP::kRelative ? 6.0F : 4.0F);
      EXPECT_EQ(ranges->output, 9.0F);
      // Layer 0 of the other order reads the embedding, to which absolute positions were added.
      if (!pre) {
        EXPECT_EQ(ranges->layers[0].attention_input > 0, positions == TP::kAbsolute);
      }
      SetQuantisers(*ranges, 9, draft.description);
      EXPECT_TRUE(SerialiseModel(draft).ok());
    }
  }
}

TEST(MeasureRanges, FindsEachPoint) {
  ModelDraft draft = TransparentModel();
  SetEntry(draft, "layers.1.ln1.bias", 3, -1.5F);
  SetEntry(draft, "layers.1.qkv.bias", 0, -7.0F);      // a query of head 0
  SetEntry(draft, "layers.1.qkv.bias", 11 + 8, 5.0F);  // a value of head 1
  SetEntry(draft, "layers.1.ln2.bias", 0, 2.25F);
  SetEntry(draft, "layers.1.fc.0.bias", 1, 3.75F);
  SetEntry(draft, "layers.1.fc.0.bias", 2, -9.0F);  // the ReLU takes it away
  SetEntry(draft, "layers.1.fc.3.bias", 7, -4.5F);
  SetEntry(draft, "loss.layers.0.weight", 4 * 8, 3.0F);  // word 4
  const double scale = FindBlock<AdaptiveEmbedding>(draft.description)->scale;

  const std::vector<uint32_t> tokens = {1, 4, 2};
  const auto ranges = MeasureRanges(Opened(draft), tokens);
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  ASSERT_EQ(ranges->layers.size(), 2U);
  const LayerRanges& layer = ranges->layers[1];
  EXPECT_EQ(layer.attention_input, 1.5F);
  EXPECT_EQ(layer.qkv, 7.0F);
  EXPECT_EQ(layer.weights, 1.0F);  // the first token sees itself alone
  EXPECT_EQ(layer.attended, 5.0F);
  EXPECT_EQ(layer.inner_input, 2.25F);
  EXPECT_EQ(layer.inner, 3.75F);
  EXPECT_EQ(layer.outer, 4.5F);
  EXPECT_EQ(ranges->layers[0].attention_input, 0.0F);
  EXPECT_EQ(ranges->layers[0].outer, 0.0F);
  EXPECT_FLOAT_EQ(ranges->output, static_cast<float>(std::max(3.0 * scale, 4.5)));

  // A text without word 4 leaves only the bias.
  const auto others = MeasureRanges(Opened(draft), std::vector<uint32_t>{1, 2});
  ASSERT_TRUE(others.ok());
  EXPECT_EQ(others->output, 4.5F);
}

// The largest entries of the embedding's rows and of the outputs, found by stepping the model.
TEST(MeasureRecurrentRanges, AreTheLargestValuesOfTheText) {
  using Cell = RecurrentCell;
  ModelDraft draft = TinyRecurrent({.cells = {Cell::kQrnn, Cell::kRelu}});
  Fill(draft, "rnns.1.weight_ih", 0.0F);
  Fill(draft, "rnns.1.weight_hh", 0.0F);
  Fill(draft, "rnns.1.bias_ih", 2.5F);
  Fill(draft, "rnns.1.bias_hh", -1.0F);
  const std::vector<uint32_t> tokens = {7, 3, 7};
  const auto ranges = MeasureRecurrentRanges(Opened(draft), tokens);
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  const std::vector<float> table = DecodedValues(draft.tensors[0]);
  float largest = 0;
  for (const uint32_t token : tokens) {
    for (size_t i = 0; i < 6; ++i) largest = std::max(largest, std::fabs(table[token * 6 + i]));
  }
  EXPECT_EQ(ranges->input, largest);
  ASSERT_EQ(ranges->outputs.size(), 2U);
  EXPECT_GT(ranges->outputs[0], 0.0F);
  EXPECT_LT(ranges->outputs[0], 1.0F);  // a sigmoid times a mean of tangents
  EXPECT_EQ(ranges->outputs[1], 1.5F);

  Fill(draft, "rnns.1.bias_ih", 3e38F);
  Fill(draft, "rnns.1.bias_hh", 3e38F);
  const Status overflow = MeasureRecurrentRanges(Opened(draft), tokens).status();
  EXPECT_EQ(overflow.code(), KINGLET_NOT_FINITE);
  EXPECT_NE(overflow.message().find("layer 1"), std::string::npos);
  EXPECT_EQ(MeasureRanges(Opened(draft), tokens).status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(MeasureRecurrentRanges(Opened(TinyMicronet()), tokens).status().code(),
            KINGLET_UNSUPPORTED);
}

TEST(MeasureRanges, OverflowIsRefused) {
  ModelDraft draft = TransparentModel();
  Fill(draft, "loss.layers.0.weight", 3e38F);
  EXPECT_EQ(MeasureRanges(Opened(draft), std::vector<uint32_t>{1}).status().code(),
            KINGLET_NOT_FINITE);
}

TEST(MeasureRanges, IdsOutOfTheVocabulary) {
  EXPECT_EQ(MeasureRanges(Opened(TinyMicronet()), std::vector<uint32_t>{1, 23}).status().code(),
            KINGLET_ID_OUT_OF_RANGE);
}

// In the encoder-decoder, too, every activation is a bias that the test has chosen.
TEST(MeasureTranslationRanges, FindsEachPoint) {
  ModelDraft draft = TinyTranslation();
  for (EncodedTensor& tensor : draft.tensors) {
    auto& values = std::get<DenseF32>(tensor.values).values;
    std::fill(values.begin(), values.end(), 0.0F);
  }
  const std::string encoder = "encoder.layers.1.", source = "layers.1.source.";
  SetEntry(draft, encoder + "attention_norm.bias", 3, -1.5F);
  SetEntry(draft, encoder + "qkv.bias", 0, -7.0F);
  SetEntry(draft, encoder + "qkv.bias", 4 + 4, 5.0F);  // a value of head 0
  SetEntry(draft, encoder + "inner_norm.bias", 0, 2.25F);
  SetEntry(draft, encoder + "inner.bias", 1, 3.75F);
  SetEntry(draft, encoder + "outer.bias", 7, -4.5F);
  SetEntry(draft, "encoder.norm.bias", 2, -6.5F);
  SetEntry(draft, source + "norm.bias", 1, 1.25F);
  SetEntry(draft, source + "query.bias", 0, -2.5F);
  SetEntry(draft, source + "key_value.bias", 0, -8.0F);     // a key
  SetEntry(draft, source + "key_value.bias", 9 + 4, 6.0F);  // a value of head 1
  SetEntry(draft, "layers.1.inner_norm.bias", 5, 0.75F);
  SetEntry(draft, "norm.bias", 0, 9.0F);

  const std::vector<SentencePair> pairs = {{{1, 12, 0}, {5, 3}}, {{7}, {3}}};
  const auto ranges = MeasureTranslationRanges(Opened(draft), pairs);
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  ASSERT_EQ(ranges->encoder.layers.size(), 2U);
  const LayerRanges& layer = ranges->encoder.layers[1];
  EXPECT_EQ(layer.attention_input, 1.5F);
  EXPECT_EQ(layer.qkv, 7.0F);
  EXPECT_EQ(layer.weights, 1.0F);  // the second source is one token
  EXPECT_EQ(layer.attended, 5.0F);
  EXPECT_EQ(layer.inner_input, 2.25F);
  EXPECT_EQ(layer.inner, 3.75F);
  EXPECT_EQ(layer.outer, 4.5F);
  EXPECT_EQ(ranges->encoder.layers[0].outer, 0.0F);
  EXPECT_EQ(ranges->encoder.output, 6.5F);
  ASSERT_EQ(ranges->cross.size(), 2U);
  const CrossRanges& cross = ranges->cross[1];
  EXPECT_EQ(cross.input, 1.25F);
  EXPECT_EQ(cross.query, 2.5F);
  EXPECT_EQ(cross.key_value, 8.0F);
  EXPECT_EQ(cross.weights, 1.0F);
  EXPECT_EQ(cross.attended, 6.0F);
  EXPECT_EQ(ranges->cross[0].attended, 0.0F);
  EXPECT_EQ(ranges->decoder.layers[1].inner_input, 0.75F);
  EXPECT_EQ(ranges->decoder.output, 9.0F);

  // Three equal keys share the weight.
  const auto even = MeasureTranslationRanges(Opened(draft), {pairs.data(), 1});
  ASSERT_TRUE(even.ok());
  EXPECT_FLOAT_EQ(even->cross[1].weights, 1.0F / 3);
  EXPECT_FLOAT_EQ(even->encoder.layers[0].weights, 1.0F / 3);
}

// In the masked model, whose norms come last, a layer's input is the output of the norm before.
TEST(MeasureMaskedRanges, FindsEachPoint) {
  ModelDraft draft = TinyMasked();
  for (EncodedTensor& tensor : draft.tensors) {
    auto& values = std::get<DenseF32>(tensor.values).values;
    std::fill(values.begin(), values.end(), 0.0F);
  }
  SetEntry(draft, "norm.bias", 1, 1.75F);
  SetEntry(draft, "layers.1.qkv.bias", 0, -7.0F);
  SetEntry(draft, "layers.1.qkv.bias", 8, 5.0F);  // a value of head 0
  SetEntry(draft, "layers.0.inner_norm.bias", 3, -1.5F);
  SetEntry(draft, "layers.1.attention_norm.bias", 0, 2.25F);
  SetEntry(draft, "layers.1.inner.bias", 1, 6.0F);
  SetEntry(draft, "layers.1.outer.bias", 7, -4.5F);
  SetEntry(draft, "layers.1.inner_norm.bias", 2, -6.5F);
  const std::vector<MaskedText> texts = {{{2, 9, 8, 3}, {0, 0, 1, 1}}, {{2}, {}}};
  const auto ranges = MeasureMaskedRanges(Opened(draft), texts);
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  ASSERT_EQ(ranges->layers.size(), 2u);
  EXPECT_EQ(ranges->layers[0].attention_input, 1.75F);
  const LayerRanges& layer = ranges->layers[1];
  EXPECT_EQ(layer.attention_input, 1.5F);
  EXPECT_EQ(layer.qkv, 7.0F);
  EXPECT_EQ(layer.weights, 1.0F);  // the second text is one token
  EXPECT_EQ(layer.attended, 5.0F);
  EXPECT_EQ(layer.inner_input, 2.25F);
  EXPECT_NEAR(layer.inner, 6.0F, 1e-6F);  // GELU of 6
  EXPECT_EQ(layer.outer, 4.5F);
  EXPECT_EQ(ranges->output, 6.5F);
  EXPECT_EQ(MeasureMaskedRanges(Opened(TinyTransformer()), texts).status().code(),
            KINGLET_UNSUPPORTED);
  const std::vector<MaskedText> foreign = {{{2, 99}, {}}};
  EXPECT_EQ(MeasureMaskedRanges(Opened(draft), foreign).status().code(), KINGLET_ID_OUT_OF_RANGE);
}

// Nodes run on several source tokens at once, and every token counts.
TEST(MeasureTranslationRanges, EverySourceTokenCounts) {
  ModelDraft draft = TinyTranslation();
  for (EncodedTensor& tensor : draft.tensors) {
    auto& values = std::get<DenseF32>(tensor.values).values;
    std::fill(values.begin(), values.end(), 0.0F);
  }
  constexpr uint32_t kWidth = 10, kToken = 12;
  SetEntry(draft, "encoder.word_emb", kToken * kWidth, 1.0F);  // the others' vectors are zero
  SetEntry(draft, "encoder.layers.0.attention_norm.weight", 0, 1.0F);
  for (const size_t at : {0, 1, 2}) {
    SentencePair pair = {{1, 1, 1}, {3}};
    pair.source[at] = kToken;
    const auto ranges = MeasureTranslationRanges(Opened(draft), {&pair, 1});
    ASSERT_TRUE(ranges.ok()) << ranges.status().message();
    EXPECT_GT(ranges->encoder.layers[0].attention_input, 1.0F) << at;
  }
}

TEST(MeasureTranslationRanges, RefusalsNameThePair) {
  const ModelDraft draft = TinyTranslation();
  const auto refused = [](const ModelDraft& model, const SentencePair& second) {
    return MeasureTranslationRanges(Opened(model), std::vector<SentencePair>{{{1}, {3}}, second})
        .status();
  };
  const struct {
    SentencePair pair;
    kinglet_status code;
    const char* message;
  } cases[] = {
      {{{13}, {3}}, KINGLET_ID_OUT_OF_RANGE, "sentence 1: "},
      {{{1}, {17, 3}}, KINGLET_ID_OUT_OF_RANGE, "sentence 1: "},
      {{std::vector<uint32_t>(8, 1), {3}}, KINGLET_INVALID_ARGUMENT, "sentence 1: "},
      {{{1}, std::vector<uint32_t>(10, 3)}, KINGLET_INVALID_ARGUMENT, "9 positions"},
  };
  for (const auto& one : cases) {
    const Status status = refused(draft, one.pair);
    EXPECT_EQ(status.code(), one.code) << status.message();
    EXPECT_NE(status.message().find(one.message), std::string::npos) << status.message();
  }
  ModelDraft loud = draft;
  Fill(loud, "encoder.layers.0.outer.bias", 3e38F);
  Fill(loud, "encoder.layers.1.outer.bias", 3e38F);
  EXPECT_NE(refused(loud, {{1}, {3}}).message().find("encoded source"), std::string::npos);
  EXPECT_EQ(refused(TinyTransformer(), {{1}, {3}}).code(), KINGLET_UNSUPPORTED);
}

}  // namespace
}  // namespace kinglet::activation_ranges_test
