#include "converters/passes/calibrate.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "converters/passes/quantise.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/converters/synthetic.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet {
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

// With the norm last, a sublayer reads the residual stream; queries count with their content bias.
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
      const auto ranges = MeasureRanges(draft, std::vector<uint32_t>{1, 4, 2});
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
      SetQuantisers(*ranges, 9, draft);
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
  const auto ranges = MeasureRanges(draft, tokens);
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

  // Without word 4 only the bias is left.
  const auto others = MeasureRanges(draft, std::vector<uint32_t>{1, 2});
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
  const auto ranges = MeasureRecurrentRanges(draft, tokens);
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
  const Status overflow = MeasureRecurrentRanges(draft, tokens).status();
  EXPECT_EQ(overflow.code(), KINGLET_NOT_FINITE);
  EXPECT_NE(overflow.message().find("layer 1"), std::string::npos);
  EXPECT_EQ(MeasureRanges(draft, tokens).status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(MeasureRecurrentRanges(TinyMicronet(), tokens).status().code(), KINGLET_UNSUPPORTED);
}

TEST(SetQuantisers, GivesARecurrentDecoderOneForEachVector) {
  ModelDraft draft = TinyRecurrent();
  SetQuantisers(RecurrentRanges{1, {2, 3}}, 9, draft);
  const auto* decoder = FindBlock<RecurrentDecoder>(draft.description);
  EXPECT_EQ(decoder->input->max_abs, 1.0F);
  EXPECT_EQ(decoder->layers[0].output->max_abs, 2.0F);
  EXPECT_EQ(decoder->layers[1].output->max_abs, 3.0F);
  EXPECT_TRUE(SerialiseModel(draft).ok());
}

TEST(MeasureRanges, OverflowIsRefused) {
  ModelDraft draft = TransparentModel();
  Fill(draft, "loss.layers.0.weight", 3e38F);
  EXPECT_EQ(MeasureRanges(draft, std::vector<uint32_t>{1}).status().code(), KINGLET_NOT_FINITE);
}

TEST(MeasureRanges, IdsOutOfTheVocabulary) {
  EXPECT_EQ(MeasureRanges(TinyMicronet(), std::vector<uint32_t>{1, 23}).status().code(),
            KINGLET_ID_OUT_OF_RANGE);
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

TEST(QuantiserFor, FollowsTheTrainingCodeForEveryWidth) {
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    for (const float range : {4.480917453765869F, 0.9487025141716003F, 11.143656730651855F}) {
      const ActivationQuantiser quantiser = QuantiserFor(range, bits);
      EXPECT_EQ(quantiser.max_abs, range);
      const double exact = double{range} / (std::pow(2.0, bits - 1) - 1);
      EXPECT_LE(quantiser.step, exact * (1 + 1e-7));
      EXPECT_GT(quantiser.step, exact * (1 - std::pow(2.0, bits - 23) - 1e-7));
      EXPECT_EQ(std::bit_cast<uint32_t>(quantiser.step) % (1U << bits), 0U);
    }
  }
  // Two quantisers of the original 9-bit network in tests/data.
  EXPECT_EQ(QuantiserFor(4.480917453765869F, 9).step, 0.017571449279785156F);
  EXPECT_EQ(QuantiserFor(11.143656730651855F, 9).step, 0.04369926452636719F);
}

TEST(QuantiserFor, NothingMeasured) {
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    for (const float range : {0.0F, 1e-44F}) {
      EXPECT_EQ(QuantiserFor(range, bits).max_abs, 1e-6F);
      EXPECT_GT(QuantiserFor(range, bits).step, 0.0F);
    }
    EXPECT_GT(QuantiserFor(1e-29F, bits).step, 0.0F);
  }
}

TEST(SetQuantisers, GivesALayerAllSevenAndTheModelItsTails) {
  ModelDraft draft = TinyMicronet();
  SetQuantisers({{{1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14}}, 15}, 9, draft);
  const auto* decoder = FindBlock<TransformerDecoder>(draft.description);
  const TransformerLayerQuantisers& quantisers = *decoder->layers[1].quantisers;
  EXPECT_EQ(quantisers.attention_input.max_abs, 8.0F);
  EXPECT_EQ(quantisers.qkv.max_abs, 9.0F);
  EXPECT_EQ(quantisers.weights.max_abs, 10.0F);
  EXPECT_EQ(quantisers.attended.max_abs, 11.0F);
  EXPECT_EQ(quantisers.inner_input.max_abs, 12.0F);
  EXPECT_EQ(quantisers.inner.max_abs, 13.0F);
  EXPECT_EQ(quantisers.outer.max_abs, 14.0F);
  EXPECT_EQ(decoder->layers[0].quantisers->attention_input.max_abs, 1.0F);
  EXPECT_EQ(decoder->output->max_abs, 15.0F);
  EXPECT_EQ(decoder->start, StreamStart::kMasked);
  EXPECT_EQ(FindBlock<AdaptiveSoftmax>(draft.description)->tail_input, TailInput::kFixedPoint15);
  EXPECT_TRUE(SerialiseModel(draft).ok());
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

// Activation quantisers fitted to a text leave what the model says about it as it was, more closely
// the more bits they have.
TEST(Calibrate, QuantisedModelsApproachTheFloatModel) {
  const TemporaryFolder folder;
  const std::string text = folder.Write("text", "the w3 w4\nw7 w22 the w15\n\nw9 unheard-of w5\n");
  const ModelDraft exact = TinyMicronet({.cache_capacity = 3});
  const auto tokens = ReadCalibrationText(text, exact.vocabulary);
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
  const auto tokens = ReadCalibrationText(folder.Write("t", "the  cat\n\n\tdog\n"), words);
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ(*tokens, (std::vector<uint32_t>{0, 3, 1, 1, 2, 1}));
}

TEST(ReadCalibrationText, LinesOfADictionaryOfFairseq) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"<s>", "<pad>", "</s>", "<unk>", "the"};
  EXPECT_EQ(*ReadCalibrationText(folder.Write("t", "the cat\n\n"), words),
            (std::vector<uint32_t>{4, 3, 2, 2}));
}

// The start token's activations are in the ranges: alone in a text it gives what the same token
// gives as the text.
TEST(Calibrate, AStartTokenIsFedBeforeTheText) {
  ModelDraft draft = TinyMicronet({.bits = 9});
  const std::vector<uint32_t> text = {4, 7, 22};
  const auto expected = MeasureRanges(draft, text);
  draft.description.start_token = 4;
  const auto found = MeasureRanges(draft, std::vector<uint32_t>{7, 22});
  ASSERT_TRUE(expected.ok() && found.ok());
  EXPECT_EQ(found->output, expected->output);
  EXPECT_EQ(found->layers[0].qkv, expected->layers[0].qkv);
  EXPECT_EQ(found->layers[1].inner, expected->layers[1].inner);
}

TEST(ReadCalibrationText, UnknownWordsWithoutAPlaceForThem) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"the", "<eos>"};
  const std::string path = folder.Write("t", "the dog\n");
  const Status status = ReadCalibrationText(path, words).status();
  EXPECT_EQ(status.code(), KINGLET_UNKNOWN_WORD);
  EXPECT_NE(status.message().find("dog"), std::string::npos);
  EXPECT_EQ(ReadCalibrationText(folder.Write("e", ""), words).status().code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(ReadCalibrationText(folder.Path("none"), words).status().code(), KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet
