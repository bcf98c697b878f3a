#include "converters/passes/calibrate.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <variant>

#include "converters/passes/quantise.h"
#include "converters/texts/text_reader.h"
#include "converters/texts/token_file.h"
#include "runtime/model.h"

namespace kinglet {
namespace {

void QuantiseStack(const ActivationRanges& ranges, int bits, TransformerDecoder& stack) {
  const auto make = [bits](float range) { return QuantiserFor(range, bits); };
  const int weight_bits = AttentionWeightBits(stack.window, bits);
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const LayerRanges& range = ranges.layers[i];
    stack.layers[i].quantisers =
        TransformerLayerQuantisers{make(range.attention_input),
                                   make(range.qkv),
                                   QuantiserFor(range.weights, weight_bits),
                                   make(range.attended),
                                   make(range.inner_input),
                                   make(range.inner),
                                   make(range.outer)};
  }
  stack.output = make(ranges.output);
}

// Tails and dense layers then multiply integers: the hidden state's codes, not its floats.
void UseFixedPointInputs(ModelDescription& description) {
  for (Block& block : description.blocks) {
    if (auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
      softmax->tail_input = TailInput::kFixedPoint15;
    } else if (auto* dense = std::get_if<DenseLayers>(&block)) {
      dense->input = TailInput::kFixedPoint15;
    }
  }
}

void CountBins(std::span<const uint32_t> tokens, AdaptiveEmbedding& embedding) {
  for (EmbeddingBin& bin : embedding.bins) {
    bin.tokens =
        static_cast<uint64_t>(std::count_if(tokens.begin(), tokens.end(), [&](uint32_t token) {
          return token >= bin.first && token - bin.first < bin.size;
        }));
  }
}

}  // namespace

Result<std::vector<uint32_t>> ReadCalibrationText(const std::string& path,
                                                  std::span<const std::string> vocabulary,
                                                  const std::optional<TextTables>& tokenizer) {
  KINGLET_ASSIGN_OR_RETURN(const VocabularySegments segments, Vocabulary::Pack(vocabulary));
  KINGLET_ASSIGN_OR_RETURN(const Vocabulary words,
                           Vocabulary::FromSegments(static_cast<uint32_t>(vocabulary.size()),
                                                    segments.words, segments.ranks));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelText> text,
                           ModelText::Of(tokenizer ? &*tokenizer : nullptr, words));
  KINGLET_ASSIGN_OR_RETURN(TokenSequence sequence, ReadTextFile(path, *text));
  if (!sequence.ids.empty()) return std::move(sequence.ids);
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration text", path, "at least one word",
                         "an empty file");
}

ActivationQuantiser QuantiserFor(float range, int bits) {
  constexpr float kNothing = 1e-30F;  // smaller ranges would have scales that are no normal float32
  constexpr float kSmallest = 1e-6F;
  const float max_abs = range > kNothing ? range : kSmallest;
  return {max_abs, ClearLowMantissaBits(max_abs / static_cast<float>(SymmetricLevels(bits)), bits)};
}

int AttentionWeightBits(uint32_t window, int bits) {
  constexpr uint64_t kTrained = 257;
  int extra_bits = 0;
  while (window > kTrained << extra_bits && bits + extra_bits < kMaxBits) ++extra_bits;
  // A sum of such products is at most 2^slots * 2^(bits - 1 + extra_bits) * 2^(bits - 1).
  const int slots = static_cast<int>(std::bit_width(window - 1U));
  return bits + std::max(0, std::min(extra_bits, 30 - slots - 2 * (bits - 1)));
}

void SetQuantisers(const ActivationRanges& ranges, int bits, ModelDescription& description) {
  if (auto* decoder = FindBlock<TransformerDecoder>(description)) {
    QuantiseStack(ranges, bits, *decoder);
  }
  UseFixedPointInputs(description);
}

void SetQuantisers(const RecurrentRanges& ranges, int bits, ModelDescription& description) {
  if (auto* decoder = FindBlock<RecurrentDecoder>(description)) {
    decoder->input = QuantiserFor(ranges.input, bits);
    for (size_t i = 0; i < decoder->layers.size(); ++i) {
      decoder->layers[i].output = QuantiserFor(ranges.outputs[i], bits);
    }
  }
  UseFixedPointInputs(description);
}

void SetQuantisers(const TranslationRanges& ranges, int bits, ModelDescription& description) {
  auto& encoder = *FindBlock<TransformerEncoder>(description);
  QuantiseStack(ranges.encoder, bits, encoder.stack);
  SetQuantisers(ranges.decoder, bits, description);
  const auto make = [bits](float range) { return QuantiserFor(range, bits); };
  const int weight_bits = AttentionWeightBits(encoder.stack.window, bits);
  auto& decoder = *FindBlock<TransformerDecoder>(description);
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    const CrossRanges& range = ranges.cross[i];
    decoder.layers[i].cross_attention->quantisers =
        CrossAttentionQuantisers{make(range.input), make(range.query), make(range.key_value),
                                 QuantiserFor(range.weights, weight_bits), make(range.attended)};
  }
}

void SetQuantisers(const RecurrentTranslationRanges& ranges, int bits,
                   ModelDescription& description) {
  SetQuantisers(ranges.decoder, bits, description);
  const auto make = [bits](float range) { return QuantiserFor(range, bits); };
  auto& encoder = *FindBlock<RecurrentEncoder>(description);
  encoder.input = make(ranges.encoder.input);
  for (size_t i = 0; i < encoder.forward.size(); ++i) {
    const ActivationQuantiser output = make(ranges.encoder.outputs[i]);
    encoder.forward[i].output = output;
    if (!encoder.backward.empty()) encoder.backward[i].output = output;
  }
  auto& attention = FindBlock<RecurrentDecoder>(description)->attention;
  if (!attention) return;
  const AttentionRanges& range = ranges.attention;
  attention->joined = make(range.joined);
  attention->output = make(range.output);
  if (attention->score == AttentionScore::kMlp) return;
  attention->weights = QuantiserFor(range.weights, AttentionWeightBits(encoder.window, bits));
  if (attention->score == AttentionScore::kGeneral) attention->query = make(range.query);
}

void SetMaskedQuantisers(const ActivationRanges& ranges, int bits, ModelDescription& description) {
  QuantiseStack(ranges, bits, FindBlock<MaskedModel>(description)->stack);
  UseFixedPointInputs(description);
}

void SetBinFrequencies(std::span<const MaskedText> texts, ModelDescription& description) {
  std::vector<uint32_t> tokens;
  for (const MaskedText& text : texts) {
    tokens.insert(tokens.end(), text.ids.begin(), text.ids.end());
  }
  SetBinFrequencies(tokens, description);
}

void SetBinFrequencies(std::span<const uint32_t> tokens, ModelDescription& description) {
  if (auto* embedding = FindBlock<AdaptiveEmbedding>(description)) CountBins(tokens, *embedding);
}

void SetBinFrequencies(std::span<const SentencePair> pairs, ModelDescription& description) {
  std::vector<uint32_t> sources, targets;
  for (const SentencePair& pair : pairs) {
    sources.insert(sources.end(), pair.source.begin(), pair.source.end());
    targets.push_back(*description.start_token);
    targets.insert(targets.end(), pair.target.begin(), pair.target.end() - 1);
  }
  SetBinFrequencies(targets, description);
  if (auto* encoder = FindBlock<TransformerEncoder>(description)) {
    CountBins(sources, encoder->embedding);
  } else if (auto* recurrent = FindBlock<RecurrentEncoder>(description)) {
    CountBins(sources, recurrent->embedding);
  }
}

namespace {

// The texts unchanged, and with masks.
Result<CalibrationInput> ReadMaskedCalibration(const std::string& path, const MaskedModel& masked,
                                               std::span<const std::string> vocabulary,
                                               const std::optional<TextTables>& tokenizer) {
  if (!tokenizer) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration", "tokenizer",
                           "a tokenizer for the text (--tokenizer vocab.txt)", "none");
  }
  const uint32_t window = masked.stack.window;
  KINGLET_ASSIGN_OR_RETURN(MaskedLines lines,
                           ReadMaskedLines(path, *tokenizer, vocabulary, window));
  CalibrationInput input;
  if (lines.shortened > 0) {
    input.notes.push_back(std::to_string(lines.shortened) + " of " +
                          std::to_string(lines.texts.size()) + " lines of " + path +
                          " are longer than the model's " + std::to_string(window) +
                          " positions: their ends are omitted");
  }
  input.texts = std::move(lines.texts);
  return input;
}

}  // namespace

Result<CalibrationInput> ReadCalibration(const std::string& path,
                                         const ModelDescription& description,
                                         std::span<const std::string> vocabulary,
                                         const std::optional<TextTables>& tokenizer) {
  CalibrationInput input;
  if (HasEncoder(description)) {
    KINGLET_ASSIGN_OR_RETURN(input.pairs, ReadPairs(path, *description.start_token));
    return input;
  }
  if (const auto* masked = FindBlock<MaskedModel>(description)) {
    return ReadMaskedCalibration(path, *masked, vocabulary, tokenizer);
  }
  if (vocabulary.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration", "vocabulary",
                           "a vocabulary for the text (--vocab)", "none");
  }
  KINGLET_ASSIGN_OR_RETURN(input.tokens, ReadCalibrationText(path, vocabulary, tokenizer));
  return input;
}

Result<SharedModel> OpenInFloats(const std::string& path) {
  ModelOptions options;
  options.backend = "cpu";
  Result<SharedModel> model = Model::Open(path, options);
  if (model.ok() || model.status().code() != KINGLET_UNSUPPORTED) return model;
  options.backend = "ref";
  return Model::Open(path, options);
}

Result<ModelDescription> Calibrated(const std::string& path, const CalibrationInput& input,
                                    const RangeRule& rule) {
  KINGLET_ASSIGN_OR_RETURN(const SharedModel model, OpenInFloats(path));
  ModelDescription description = model->file().description();
  if (FindBlock<RecurrentEncoder>(description) != nullptr) {
    KINGLET_ASSIGN_OR_RETURN(const RecurrentTranslationRanges ranges,
                             MeasureRecurrentTranslationRanges(model, input.pairs, rule));
    SetBinFrequencies(input.pairs, description);
    SetQuantisers(ranges, rule.bits, description);
    return description;
  }
  if (HasEncoder(description)) {
    KINGLET_ASSIGN_OR_RETURN(const TranslationRanges ranges,
                             MeasureTranslationRanges(model, input.pairs, rule));
    SetBinFrequencies(input.pairs, description);
    SetQuantisers(ranges, rule.bits, description);
    return description;
  }
  if (FindBlock<MaskedModel>(description) != nullptr) {
    KINGLET_ASSIGN_OR_RETURN(const ActivationRanges ranges,
                             MeasureMaskedRanges(model, input.texts, rule));
    SetBinFrequencies(input.texts, description);
    SetMaskedQuantisers(ranges, rule.bits, description);
    return description;
  }
  SetBinFrequencies(input.tokens, description);
  if (FindBlock<RecurrentDecoder>(description) != nullptr) {
    KINGLET_ASSIGN_OR_RETURN(const RecurrentRanges ranges,
                             MeasureRecurrentRanges(model, input.tokens, rule));
    SetQuantisers(ranges, rule.bits, description);
    return description;
  }
  KINGLET_ASSIGN_OR_RETURN(const ActivationRanges ranges, MeasureRanges(model, input.tokens, rule));
  SetQuantisers(ranges, rule.bits, description);
  return description;
}

}  // namespace kinglet
