#include "converters/passes/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converters/passes/quantise.h"
#include "format/write_file.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/converters/opened.h"
#include "tests/converters/synthetic.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::calibrate_test {
namespace {

// Calibrates as a conversion does: writes the draft, runs it and takes the new description.
Status Calibrate(const std::string& path, int bits, ModelDraft& draft) {
  KINGLET_ASSIGN_OR_RETURN(
      const CalibrationInput input,
      ReadCalibration(path, draft.description, draft.vocabulary, draft.tokenizer));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, SerialiseModel(draft));
  const TemporaryFolder folder;
  const std::string file = folder.Path("model.kgl");
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(bytes, file));
  KINGLET_ASSIGN_OR_RETURN(draft.description, Calibrated(file, input, {bits}));
  return {};
}

constexpr float kNothing = 1e-6F;  // of a quantiser of zeros

const TransformerLayerQuantisers& QuantisersOf(const ModelDescription& description, size_t layer) {
  const auto* masked = FindBlock<MaskedModel>(description);
  return *(masked != nullptr ? masked->stack : *FindBlock<TransformerDecoder>(description))
              .layers[layer]
              .quantisers;
}
const CrossAttentionQuantisers& CrossOf(const ModelDescription& description, size_t layer) {
  return *FindBlock<TransformerDecoder>(description)->layers[layer].cross_attention->quantisers;
}
float OutputOf(const ModelDescription& description) {
  const auto* masked = FindBlock<MaskedModel>(description);
  return (masked != nullptr ? masked->stack : *FindBlock<TransformerDecoder>(description))
      .output->max_abs;
}

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
TEST(CalibratedRanges, OfEveryFormOfTransformer) {
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
      const auto ranges = Calibrated(Opened(draft), {.tokens = {1, 4, 2}}, {});
      ASSERT_TRUE(ranges.ok()) << ranges.status().message();
      const TransformerLayerQuantisers& layer = QuantisersOf(*ranges, 1);
      EXPECT_EQ(layer.attention_input.max_abs, pre ? 1.5F : 3.5F);
      EXPECT_EQ(layer.inner_input.max_abs, pre ? 2.5F : 1.5F);
      EXPECT_EQ(layer.qkv.max_abs, positions == TP::kRelative ? 6.0F : 4.0F);
      EXPECT_EQ(OutputOf(*ranges), 9.0F);
      // Layer 0 of the other order reads the embedding, to which absolute positions were added.
      if (!pre) {
        EXPECT_EQ(QuantisersOf(*ranges, 0).attention_input.max_abs > kNothing,
                  positions == TP::kAbsolute);
      }
      draft.description = *ranges;
      EXPECT_EQ(FindBlock<AdaptiveSoftmax>(draft.description)->tail_input,
                TailInput::kFixedPoint15);
      EXPECT_TRUE(SerialiseModel(draft).ok());
    }
  }
}

TEST(CalibratedRanges, OfEachPointOfATransformer) {
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
  const auto ranges = Calibrated(Opened(draft), {.tokens = tokens}, {});
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  const TransformerLayerQuantisers& layer = QuantisersOf(*ranges, 1);
  EXPECT_EQ(layer.attention_input.max_abs, 1.5F);
  EXPECT_EQ(layer.qkv.max_abs, 7.0F);
  EXPECT_EQ(layer.weights.max_abs, 1.0F);  // the first token sees itself alone
  EXPECT_EQ(layer.attended.max_abs, 5.0F);
  EXPECT_EQ(layer.inner_input.max_abs, 2.25F);
  EXPECT_EQ(layer.inner.max_abs, 3.75F);
  EXPECT_EQ(layer.outer.max_abs, 4.5F);
  EXPECT_EQ(QuantisersOf(*ranges, 0).attention_input.max_abs, kNothing);
  EXPECT_EQ(QuantisersOf(*ranges, 0).outer.max_abs, kNothing);
  EXPECT_FLOAT_EQ(OutputOf(*ranges), static_cast<float>(std::max(3.0 * scale, 4.5)));

  // A text without word 4 leaves only the bias.
  const auto others = Calibrated(Opened(draft), {.tokens = {1, 2}}, {});
  ASSERT_TRUE(others.ok());
  EXPECT_EQ(OutputOf(*others), 4.5F);
}

// The largest entries of the embedding's rows and of the outputs, found by stepping the model.
TEST(CalibratedRanges, OfARecurrentDecoder) {
  using Cell = RecurrentCell;
  ModelDraft draft = TinyRecurrent({.cells = {Cell::kQrnn, Cell::kRelu}});
  Fill(draft, "rnns.1.weight_ih", 0.0F);
  Fill(draft, "rnns.1.weight_hh", 0.0F);
  Fill(draft, "rnns.1.bias_ih", 2.5F);
  Fill(draft, "rnns.1.bias_hh", -1.0F);
  const std::vector<uint32_t> tokens = {7, 3, 7};
  const auto ranges = Calibrated(Opened(draft), {.tokens = tokens}, {});
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  const std::vector<float> table = DecodedValues(draft.tensors[0]);
  float largest = 0;
  for (const uint32_t token : tokens) {
    for (size_t i = 0; i < 6; ++i) largest = std::max(largest, std::fabs(table[token * 6 + i]));
  }
  const auto* decoder = FindBlock<RecurrentDecoder>(*ranges);
  EXPECT_EQ(decoder->input->max_abs, largest);
  EXPECT_GT(decoder->layers[0].output->max_abs, kNothing);
  EXPECT_LT(decoder->layers[0].output->max_abs, 1.0F);  // a sigmoid times a mean of tangents
  EXPECT_EQ(decoder->layers[1].output->max_abs, 1.5F);

  Fill(draft, "rnns.1.bias_ih", 3e38F);
  Fill(draft, "rnns.1.bias_hh", 3e38F);
  const Status overflow = Calibrated(Opened(draft), {.tokens = tokens}, {}).status();
  EXPECT_EQ(overflow.code(), KINGLET_NOT_FINITE);
  EXPECT_NE(overflow.message().find("layer 1"), std::string::npos);
}

// The weight of the projection doubles the first unit: the layer's output is twice the unit at
// most, and both quantisers have their own range.
TEST(CalibratedRanges, OfAProjection) {
  ModelDraft draft = TinyRecurrent({.cells = {RecurrentCell::kLstm}, .units = 1, .projected = 1});
  Fill(draft, "rnns.0.weight_hr", 2.0F);
  const auto ranges = Calibrated(Opened(draft), {.tokens = {7, 3, 7}}, {});
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  const RecurrentLayer& layer = FindBlock<RecurrentDecoder>(*ranges)->layers.at(0);
  EXPECT_GT(layer.projection->input->max_abs, kNothing);
  EXPECT_EQ(layer.output->max_abs, 2 * layer.projection->input->max_abs);
}

// Each quantiser by its name, and no text.
TEST(CalibratedRanges, GivenByName) {
  const ModelDraft draft = TinyRecurrent({.cells = {RecurrentCell::kLstm, RecurrentCell::kLstm}});
  const std::string name = FindBlock<RecurrentDecoder>(draft.description)->name;
  std::map<std::string, float> given = {{name + ".input", 2.5F},
                                        {name + ".layers.0.output", 0.75F},
                                        {name + ".layers.1.output", 0.0F}};
  const auto ranges = Calibrated(Opened(draft), {.ranges = given}, {.bits = 7});
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  const auto* decoder = FindBlock<RecurrentDecoder>(*ranges);
  EXPECT_EQ(decoder->input->max_abs, 2.5F);
  EXPECT_EQ(decoder->input->scale, QuantiserFor(2.5F, 7).scale);
  EXPECT_EQ(decoder->layers[0].output->max_abs, 0.75F);
  EXPECT_EQ(decoder->layers[1].output->max_abs, kNothing);

  const auto refusal = [&draft](const std::map<std::string, float>& wrong) {
    return Calibrated(Opened(draft), {.ranges = wrong}, {}).status().message();
  };
  given.emplace(name + ".layers.2.output", 1.0F);
  EXPECT_EQ(refusal(given), "calibration: " + name +
                                ".layers.2.output: expected the name of a quantiser, such as " +
                                name + ".input, found another name");
  given.erase(name + ".layers.0.output");
  EXPECT_EQ(refusal(given),
            "calibration: " + name + ".layers.0.output: expected its range, found none");
}

TEST(CalibratedRanges, GivenToATransformer) {
  const ModelDraft draft = TransparentModel();
  const ModelDescription& description = draft.description;
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  std::map<std::string, float> given = {{decoder->name + ".output", 9.0F}};
  for (size_t i = 0; i < decoder->layers.size(); ++i) {
    float range = 1.0F;
    for (const char* field :
         {"attention_input", "qkv", "weights", "attended", "inner_input", "inner", "outer"}) {
      given[decoder->name + ".layers." + std::to_string(i) + "." + field] = range++;
    }
  }
  const auto ranges = Calibrated(Opened(draft), {.ranges = given}, {});
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  EXPECT_EQ(OutputOf(*ranges), 9.0F);
  EXPECT_EQ(QuantisersOf(*ranges, 1).attention_input.max_abs, 1.0F);
  EXPECT_EQ(QuantisersOf(*ranges, 1).outer.max_abs, 7.0F);
}

TEST(CalibratedRanges, OfAModelWithoutADecoderAreRefused) {
  EXPECT_EQ(Calibrated(Opened(TinyClassifier()), {.tokens = {1}}, {}).status().code(),
            KINGLET_UNSUPPORTED);
}

TEST(CalibratedRanges, OverflowIsRefused) {
  ModelDraft draft = TransparentModel();
  Fill(draft, "loss.layers.0.weight", 3e38F);
  EXPECT_EQ(Calibrated(Opened(draft), {.tokens = {1}}, {}).status().code(), KINGLET_NOT_FINITE);
}

TEST(CalibratedRanges, IdsOutOfTheVocabulary) {
  EXPECT_EQ(Calibrated(Opened(TinyMicronet()), {.tokens = {1, 23}}, {}).status().code(),
            KINGLET_ID_OUT_OF_RANGE);
}

// In an encoder-decoder too every activation is a bias that the test has chosen.
TEST(CalibratedRanges, OfEachPointOfATranslationModel) {
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
  const auto ranges = Calibrated(Opened(draft), {.pairs = pairs}, {});
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  const TransformerDecoder& stack = FindBlock<TransformerEncoder>(*ranges)->stack;
  const TransformerLayerQuantisers& layer = *stack.layers[1].quantisers;
  EXPECT_EQ(layer.attention_input.max_abs, 1.5F);
  EXPECT_EQ(layer.qkv.max_abs, 7.0F);
  EXPECT_EQ(layer.weights.max_abs, 1.0F);  // the second source is one token
  EXPECT_EQ(layer.attended.max_abs, 5.0F);
  EXPECT_EQ(layer.inner_input.max_abs, 2.25F);
  EXPECT_EQ(layer.inner.max_abs, 3.75F);
  EXPECT_EQ(layer.outer.max_abs, 4.5F);
  EXPECT_EQ(stack.layers[0].quantisers->outer.max_abs, kNothing);
  EXPECT_EQ(stack.output->max_abs, 6.5F);
  const CrossAttentionQuantisers& cross = CrossOf(*ranges, 1);
  EXPECT_EQ(cross.input.max_abs, 1.25F);
  EXPECT_EQ(cross.query.max_abs, 2.5F);
  EXPECT_EQ(cross.key_value.max_abs, 8.0F);
  EXPECT_EQ(cross.weights.max_abs, 1.0F);
  EXPECT_EQ(cross.attended.max_abs, 6.0F);
  EXPECT_EQ(CrossOf(*ranges, 0).attended.max_abs, kNothing);
  EXPECT_EQ(QuantisersOf(*ranges, 1).inner_input.max_abs, 0.75F);
  EXPECT_EQ(OutputOf(*ranges), 9.0F);

  // Three equal keys share the weight.
  const auto even = Calibrated(Opened(draft), {.pairs = {pairs[0]}}, {});
  ASSERT_TRUE(even.ok());
  EXPECT_FLOAT_EQ(CrossOf(*even, 1).weights.max_abs, 1.0F / 3);
  EXPECT_FLOAT_EQ(FindBlock<TransformerEncoder>(*even)->stack.layers[0].quantisers->weights.max_abs,
                  1.0F / 3);
}

// A masked model. Norms come last: an input is what the norm before left.
TEST(CalibratedRanges, OfEachPointOfAMaskedModel) {
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
  const auto ranges = Calibrated(Opened(draft), {.texts = texts}, {});
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  EXPECT_EQ(QuantisersOf(*ranges, 0).attention_input.max_abs, 1.75F);
  const TransformerLayerQuantisers& layer = QuantisersOf(*ranges, 1);
  EXPECT_EQ(layer.attention_input.max_abs, 1.5F);
  EXPECT_EQ(layer.qkv.max_abs, 7.0F);
  EXPECT_EQ(layer.weights.max_abs, 1.0F);  // the second text is one token
  EXPECT_EQ(layer.attended.max_abs, 5.0F);
  EXPECT_EQ(layer.inner_input.max_abs, 2.25F);
  EXPECT_NEAR(layer.inner.max_abs, 6.0F, 1e-6F);  // GELU of 6
  EXPECT_EQ(layer.outer.max_abs, 4.5F);
  EXPECT_EQ(OutputOf(*ranges), 6.5F);
  const std::vector<MaskedText> foreign = {{{2, 99}, {}}};
  EXPECT_EQ(Calibrated(Opened(draft), {.texts = foreign}, {}).status().code(),
            KINGLET_ID_OUT_OF_RANGE);
}

// Steps run on several source tokens at once, and each of them counts.
TEST(CalibratedRanges, EverySourceTokenCounts) {
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
    const auto ranges = Calibrated(Opened(draft), {.pairs = {pair}}, {});
    ASSERT_TRUE(ranges.ok()) << ranges.status().message();
    EXPECT_GT(
        FindBlock<TransformerEncoder>(*ranges)->stack.layers[0].quantisers->attention_input.max_abs,
        1.0F)
        << at;
  }
}

TEST(CalibratedRanges, RefusalsNameThePair) {
  const ModelDraft draft = TinyTranslation();
  const auto refused = [](const ModelDraft& model, const SentencePair& second) {
    return Calibrated(Opened(model), {.pairs = {{{1}, {3}}, second}}, {}).status();
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
  EXPECT_NE(
      refused(loud, {{1}, {3}}).message().find("block encoder, stack, layer 1, attention_input: "),
      std::string::npos);
}

TEST(AttentionWeightBits, GrowWithTheWindowAsLongAsSumsFit) {
  EXPECT_EQ(AttentionWeightBits(1, 9), 9);
  EXPECT_EQ(AttentionWeightBits(97, 9), 9);
  EXPECT_EQ(AttentionWeightBits(257, 9), 9);
  EXPECT_EQ(AttentionWeightBits(258, 9), 10);
  EXPECT_EQ(AttentionWeightBits(641, 9), 11);
  EXPECT_EQ(AttentionWeightBits(1600, 9), 12);
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    for (const uint32_t window : {1U, 300U, 1600U, 5000U, 1U << 20U}) {
      const int found = AttentionWeightBits(window, bits);
      EXPECT_GE(found, bits);
      EXPECT_LE(found, kMaxBits);
      if (found == bits) continue;
      EXPECT_LT(static_cast<double>(window) * std::pow(2.0, found - 1) * std::pow(2.0, bits - 1),
                0x1p31);
    }
  }
}

TEST(QuantiserFor, FollowsTheFrameworkForEveryWidth) {
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    for (const float range : {4.480917453765869F, 0.9487025141716003F, 11.143656730651855F}) {
      const ActivationQuantiser quantiser = QuantiserFor(range, bits);
      EXPECT_EQ(quantiser.max_abs, range);
      const double exact = double{range} / (std::pow(2.0, bits - 1) - 1);
      EXPECT_LE(quantiser.scale, exact * (1 + 1e-7));
      EXPECT_GT(quantiser.scale, exact * (1 - std::pow(2.0, bits - 23) - 1e-7));
      EXPECT_EQ(std::bit_cast<uint32_t>(quantiser.scale) % (1U << bits), 0U);
    }
  }
  // Two quantisers of the original 9-bit network in tests/data.
  EXPECT_EQ(QuantiserFor(4.480917453765869F, 9).scale, 0.017571449279785156F);
  EXPECT_EQ(QuantiserFor(11.143656730651855F, 9).scale, 0.04369926452636719F);
}

TEST(QuantiserFor, NothingMeasured) {
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    for (const float range : {0.0F, 1e-44F}) {
      EXPECT_EQ(QuantiserFor(range, bits).max_abs, 1e-6F);
      EXPECT_GT(QuantiserFor(range, bits).scale, 0.0F);
    }
    EXPECT_GT(QuantiserFor(1e-29F, bits).scale, 0.0F);
  }
}

TEST(Calibrate, ATranslationModelReadsPairs) {
  const TemporaryFolder folder;
  ModelDraft draft = TinyTranslation({.bits = 9, .vocabulary = false});
  // Fed to the decoder: 2 5 16, 2; to the encoder: 1 12 0, 7.
  const std::string pairs = folder.Write("pairs", "1 12 0 ||| 2 5 16 3\n7 ||| 2 3\n");
  ASSERT_TRUE(Calibrate(pairs, 9, draft).ok());
  const auto* encoder = FindBlock<TransformerEncoder>(draft.description);
  EXPECT_EQ(FindBlock<AdaptiveEmbedding>(draft.description)->bins[0].tokens, 4u);
  EXPECT_EQ(encoder->embedding.bins[0].tokens, 4u);
  EXPECT_TRUE(encoder->stack.output.has_value());
  EXPECT_TRUE(SerialiseModel(draft).ok());

  draft = TinyTranslation({.bits = 9});
  EXPECT_EQ(Calibrate(folder.Write("text", "t4 t5\n"), 9, draft).code(), KINGLET_INVALID_ARGUMENT);
}

std::vector<double> LogProbabilities(const ModelDraft& draft, std::span<const uint32_t> tokens) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  const auto model = Model::FromBytes(*bytes, {.backend = "ref64"});
  EXPECT_TRUE(model.ok()) << model.status().message();
  const auto session = Session::Create(*model);
  std::vector<double> result;
  for (const uint32_t token : tokens) {
    EXPECT_TRUE((*session)->StepToken(token).ok());
    for (uint32_t id = 0; id < draft.description.vocabulary_size; ++id) {
      result.push_back((*session)->LogProbability(id).value());
    }
  }
  return result;
}

// Activation quantisers that are calibrated on a text change log-probabilities of that text little,
// and less the more bits they have.
TEST(Calibrate, QuantisedModelsApproachTheFloatModel) {
  const TemporaryFolder folder;
  const std::string text = folder.Write("text", "the w3 w4\nw7 w22 the w15\n\nw9 unheard-of w5\n");
  const ModelDraft exact = TinyMicronet({.cache_capacity = 3});
  const auto tokens = ReadCalibrationText(text, exact.vocabulary, {});
  ASSERT_TRUE(tokens.ok());
  const std::vector<double> expected = LogProbabilities(exact, *tokens);
  double previous = std::numeric_limits<double>::infinity();
  std::vector<TensorId> matrices;
  for (TensorId id = 0; id < exact.tensors.size(); ++id) {
    const std::string& name = exact.tensors[id].name;
    if (exact.tensors[id].shape.size() == 2 && name.find("pos_emb") == std::string::npos) {
      matrices.push_back(id);
    }
  }
  for (const auto& [bits, bound] : {std::pair(4, 1.0), std::pair(8, 0.2), std::pair(12, 0.02)}) {
    ModelDraft draft = exact;
    for (const TensorId id : matrices) QuantiseTensor(bits, draft.tensors[id]);
    ASSERT_TRUE(Calibrate(text, bits, draft).ok());
    const std::vector<double> found = LogProbabilities(draft, *tokens);
    double difference = 0;
    for (size_t i = 0; i < found.size(); ++i) difference += std::abs(found[i] - expected[i]);
    difference /= static_cast<double>(found.size());
    EXPECT_LT(difference, bound) << bits;
    EXPECT_LT(difference, previous) << bits;
    previous = difference;
  }
}

TEST(Calibrate, RecordsHowOftenTheWordsOfEachBinOccur) {
  const TemporaryFolder folder;
  ModelDraft draft = TinyMicronet({.bits = 9});  // bins of 3, 7 and 13 words
  // 0, 3, 1; 22, 9, 10, 1: a line ends with <eos>.
  ASSERT_TRUE(Calibrate(folder.Write("text", "the w3\nw22 w9 w10\n"), 9, draft).ok());
  const auto file = ModelFile::FromBytes(*SerialiseModel(draft));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto& bins = FindBlock<AdaptiveEmbedding>((*file)->description())->bins;
  EXPECT_EQ(bins[0].tokens, 3u);
  EXPECT_EQ(bins[1].tokens, 2u);
  EXPECT_EQ(bins[2].tokens, 2u);
}

TEST(ReadCalibrationText, WordsOfLinesWithTheirEnds) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"the", "<eos>", "<unk>", "cat"};
  const auto tokens = ReadCalibrationText(folder.Write("t", "the  cat\n\n\tdog\n"), words, {});
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ(*tokens, (std::vector<uint32_t>{0, 3, 1, 1, 2, 1}));
}

TEST(ReadCalibration, AByteOrderMarkIsOmitted) {
  const TemporaryFolder folder;
  const ModelDraft draft = TinyMicronet({.bits = 9});
  const auto input = ReadCalibration(folder.Write("t", "\xEF\xBB\xBFthe"), draft.description,
                                     std::vector<std::string>{"the", "<eos>"}, {});
  ASSERT_TRUE(input.ok()) << input.status().message();
  EXPECT_EQ(input->tokens, (std::vector<uint32_t>{0, 1}));
}

TEST(ReadCalibration, IdsForAModelWithoutAVocabulary) {
  const TemporaryFolder folder;
  const ModelDraft draft = TinyMicronet({.bits = 9});  // 23 words
  const auto input = ReadCalibration(folder.Write("ids", "4 7\n22\n"), draft.description, {}, {});
  ASSERT_TRUE(input.ok()) << input.status().message();
  EXPECT_EQ(input->tokens, (std::vector<uint32_t>{4, 7, 22}));
  for (const auto& [ids, found] : {std::pair("4 23\n", "found 23"), std::pair("", "found an empty"),
                                   std::pair("the cat\n", "--vocab")}) {
    const Status status =
        ReadCalibration(folder.Write("bad", ids), draft.description, {}, {}).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(found), std::string::npos) << status.message();
  }
}

TEST(ReadCalibrationText, TokenizedAsByTheModel) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"the", "<eos>", "<unk>", "cat", ","};
  const std::string path = folder.Write("t", "the cat, the dog\n");
  const TextTables rule{false, WordRule{WordRule::Rule::kWikiText}};
  EXPECT_EQ(*ReadCalibrationText(path, words, rule), (std::vector<uint32_t>{0, 3, 4, 0, 2, 1}));
  EXPECT_EQ(*ReadCalibrationText(path, words, {}), (std::vector<uint32_t>{0, 2, 0, 2, 1}));
}

TEST(ReadCalibrationText, LinesOfADictionaryOfFairseq) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"<s>", "<pad>", "</s>", "<unk>", "the"};
  EXPECT_EQ(*ReadCalibrationText(folder.Write("t", "the cat\n\n"), words, {}),
            (std::vector<uint32_t>{4, 3, 2, 2}));
}

// The ranges include the activations of the start token: a text after a start token gives the same
// ranges as a text that begins with that token.
TEST(Calibrate, AStartTokenIsFedBeforeTheText) {
  ModelDraft draft = TinyMicronet({.bits = 9});
  const std::vector<uint32_t> text = {4, 7, 22};
  const auto expected = Calibrated(Opened(draft), {.tokens = text}, {});
  draft.description.start_token = 4;
  const auto found = Calibrated(Opened(draft), {.tokens = {7, 22}}, {});
  ASSERT_TRUE(expected.ok() && found.ok());
  EXPECT_EQ(OutputOf(*found), OutputOf(*expected));
  EXPECT_EQ(QuantisersOf(*found, 0).qkv, QuantisersOf(*expected, 0).qkv);
  EXPECT_EQ(QuantisersOf(*found, 1).inner, QuantisersOf(*expected, 1).inner);
}

TEST(ReadCalibrationText, UnknownWordsWithoutAPlaceForThem) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"the", "<eos>"};
  const std::string path = folder.Write("t", "the dog\n");
  const Status status = ReadCalibrationText(path, words, {}).status();
  EXPECT_EQ(status.code(), KINGLET_UNKNOWN_WORD);
  EXPECT_NE(status.message().find("dog"), std::string::npos);
  EXPECT_EQ(ReadCalibrationText(folder.Write("e", ""), words, {}).status().code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(ReadCalibrationText(folder.Path("none"), words, {}).status().code(), KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::calibrate_test
