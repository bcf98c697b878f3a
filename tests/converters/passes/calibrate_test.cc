#include "converters/passes/calibrate.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "converters/passes/quantise.h"
#include "format/write_file.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/converters/opened.h"
#include "tests/converters/synthetic.h"
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

TEST(SetQuantisers, GivesARecurrentDecoderOneForEachVector) {
  ModelDraft draft = TinyRecurrent();
  SetQuantisers(RecurrentRanges{1, {2, 3}}, 9, draft.description);
  const auto* decoder = FindBlock<RecurrentDecoder>(draft.description);
  EXPECT_EQ(decoder->input->max_abs, 1.0F);
  EXPECT_EQ(decoder->layers[0].output->max_abs, 2.0F);
  EXPECT_EQ(decoder->layers[1].output->max_abs, 3.0F);
  EXPECT_TRUE(SerialiseModel(draft).ok());
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

TEST(SetQuantisers, GivesALayerAllSevenAndTheModelItsTails) {
  ModelDraft draft = TinyMicronet();
  SetQuantisers({{{1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14}}, 15}, 9, draft.description);
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

TEST(SetQuantisers, GivesATranslationModelThoseOfBothStacksAndBetween) {
  ModelDraft draft = TinyTranslation();
  const LayerRanges layer{1, 2, 3, 4, 5, 6, 7};
  SetQuantisers(
      TranslationRanges{
          {{layer, layer}, 8}, {{layer, layer}, 9}, {{1, 2, 3, 4, 5}, {10, 11, 12, 13, 14}}},
      9, draft.description);
  const auto* decoder = FindBlock<TransformerDecoder>(draft.description);
  const CrossAttentionQuantisers& cross = *decoder->layers[1].cross_attention->quantisers;
  EXPECT_EQ(cross.input.max_abs, 10.0F);
  EXPECT_EQ(cross.query.max_abs, 11.0F);
  EXPECT_EQ(cross.key_value.max_abs, 12.0F);
  EXPECT_EQ(cross.weights.max_abs, 13.0F);
  EXPECT_EQ(cross.attended.max_abs, 14.0F);
  EXPECT_EQ(decoder->output->max_abs, 9.0F);
  const auto& stack = FindBlock<TransformerEncoder>(draft.description)->stack;
  EXPECT_EQ(stack.output->max_abs, 8.0F);
  EXPECT_EQ(stack.layers[1].quantisers->outer.max_abs, 7.0F);
  EXPECT_TRUE(SerialiseModel(draft).ok());
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
  ModelDraft wordless = TinyTransformer({.bits = 9});
  EXPECT_NE(Calibrate(folder.Path("text"), 9, wordless).message().find("--vocab"),
            std::string::npos);
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
  const auto expected = MeasureRanges(Opened(draft), text);
  draft.description.start_token = 4;
  const auto found = MeasureRanges(Opened(draft), std::vector<uint32_t>{7, 22});
  ASSERT_TRUE(expected.ok() && found.ok());
  EXPECT_EQ(found->output, expected->output);
  EXPECT_EQ(found->layers[0].qkv, expected->layers[0].qkv);
  EXPECT_EQ(found->layers[1].inner, expected->layers[1].inner);
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
