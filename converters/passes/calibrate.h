// Calibration: activation quantisers for a model trained in floats. The range of each quantiser
// comes from the absolute values that the model computes at its point on a text, or, for a
// translation model, on pairs of sentences (RangeRule). The text also gives the frequencies of the
// embedding's bins.
#ifndef KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
#define KINGLET_CONVERTERS_PASSES_CALIBRATE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/passes/activation_ranges.h"
#include "converters/passes/magnitudes.h"
#include "converters/texts/masked_file.h"
#include "converters/texts/pair_file.h"
#include "format/blocks.h"
#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// The ids of a text, tokenized by `tokenizer` or split at white space. Errors: those of
// ReadTextFile (converters/texts/text_reader.h); KINGLET_INVALID_ARGUMENT for a text without
// tokens.
Result<std::vector<uint32_t>> ReadCalibrationText(const std::string& path,
                                                  std::span<const std::string> vocabulary,
                                                  const std::optional<TextTables>& tokenizer);

// Bits of the quantiser of attention weights. In a window of n slots a weight is 1 / n on average.
// Up to 257 slots, the widest window that was trained with quantised weights, `bits` resolve such
// weights. Wider windows get one more bit for each doubling, as long as sums of weights times
// values of `bits` stay below 2^31. REQUIRES: window >= 1.
int AttentionWeightBits(uint32_t window, int bits);

// A quantiser as the framework makes it: max_abs is the range, the scale is range / (2^(bits-1)
// - 1) with its low `bits` mantissa bits cleared. A range below 1e-30 counts as 1e-6.
ActivationQuantiser QuantiserFor(float range, int bits);

// Sets the decoder's quantisers and makes the softmax's tail clusters fixed-point. The vectors that
// attention reads before the stream's start do not change. REQUIRES: ranges of each layer.
void SetQuantisers(const ActivationRanges& ranges, int bits, ModelDescription& description);
void SetQuantisers(const RecurrentRanges& ranges, int bits, ModelDescription& description);
// Sets also the quantisers of the encoder and of each layer's attention to the source.
void SetQuantisers(const TranslationRanges& ranges, int bits, ModelDescription& description);
void SetQuantisers(const RecurrentTranslationRanges& ranges, int bits,
                   ModelDescription& description);
// Like SetQuantisers, for a masked model.
void SetMaskedQuantisers(const ActivationRanges& ranges, int bits, ModelDescription& description);

// Records how many of the tokens are in each bin of the embedding.
void SetBinFrequencies(std::span<const uint32_t> tokens, ModelDescription& description);
// Records the bin frequencies of texts that a masked model reads.
void SetBinFrequencies(std::span<const MaskedText> texts, ModelDescription& description);
// Records the bin frequencies of the embeddings of encoder and decoder. The decoder reads the start
// token and the target without its last token.
void SetBinFrequencies(std::span<const SentencePair> pairs, ModelDescription& description);

// Running text, pairs for a model with an encoder, or texts for a masked model. Each text is read
// unchanged, and again with masks if the model predicts words (WithMasks,
// converters/texts/masked_file.h).
struct CalibrationInput {
  std::vector<uint32_t> tokens = {};
  std::vector<SentencePair> pairs = {};
  std::vector<MaskedText> texts = {};
  std::vector<std::string> notes = {};  // for the user
};
// Reads a text, or, for a model with an encoder, pairs of ids (converters/texts/pair_file.h).
// Errors: KINGLET_INVALID_ARGUMENT for running text without a vocabulary, and for a masked model
// without a tokenizer; those of reading the file.
Result<CalibrationInput> ReadCalibration(const std::string& path,
                                         const ModelDescription& description,
                                         std::span<const std::string> vocabulary,
                                         const std::optional<TextTables>& tokenizer);

// A model file on the fastest backend of this build that computes it in float. Errors: those of
// opening it.
Result<SharedModel> OpenInFloats(const std::string& path);

// The description of a model file, with quantisers by the rule and bin frequencies from the input.
// Ranges are measured by a run of the model that OpenInFloats opens.
// Errors: those of opening and running the model. REQUIRES: its weights are quantised.
Result<ModelDescription> Calibrated(const std::string& path, const CalibrationInput& input,
                                    const RangeRule& rule);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
