// Activation quantisers for a model that was trained in floats: their ranges are the largest
// absolute values that a text, or for a translation model pairs of sentences, makes the model
// compute. The text also says how often the words of each bin occur.
#ifndef KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
#define KINGLET_CONVERTERS_PASSES_CALIBRATE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "converters/passes/activation_ranges.h"
#include "converters/texts/pair_file.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// The ids of a text's words. Words that are not in the vocabulary become <unk>, if that is.
// Errors: as ForEachWord's; KINGLET_UNKNOWN_WORD naming the word; KINGLET_INVALID_ARGUMENT for a
// text without words.
Result<std::vector<uint32_t>> ReadCalibrationText(const std::string& path,
                                                  std::span<const std::string> vocabulary);

// Bits of the quantiser of attention weights. A weight of a window of n slots is 1 / n in the mean:
// up to 257 slots, the widest that were trained so, `bits` resolve it; of wider ones it takes a bit
// more for each doubling, as long as sums of products with values of `bits` stay below 2^31.
// REQUIRES: window >= 1.
int AttentionWeightBits(uint32_t window, int bits);

// As the training code makes one: the range itself and, for the step, range / (2^(bits-1) - 1) with
// its low `bits` mantissa bits cleared. A range of 0, or below 1e-30, counts
// as 1e-6.
ActivationQuantiser QuantiserFor(float range, int bits);

// Gives the decoder its quantisers and the softmax its fixed-point tails. What attention sees
// before the stream's start stays as it is. REQUIRES: a range per layer.
void SetQuantisers(const ActivationRanges& ranges, int bits, ModelDescription& description);
void SetQuantisers(const RecurrentRanges& ranges, int bits, ModelDescription& description);
// Gives them to the encoder and to each layer's attention to the source too.
void SetQuantisers(const TranslationRanges& ranges, int bits, ModelDescription& description);

// Records how many of the tokens lie in each bin of the embedding.
void SetBinFrequencies(std::span<const uint32_t> tokens, ModelDescription& description);
// The same of both languages; the start token and the words of a target are what the decoder reads.
void SetBinFrequencies(std::span<const SentencePair> pairs, ModelDescription& description);

// What a model is calibrated with: running text, or, for one with an encoder, pairs.
struct CalibrationInput {
  std::vector<uint32_t> tokens;
  std::vector<SentencePair> pairs;
};
// From a file of words, or, for a model with an encoder, of pairs of ids
// (converters/texts/pair_file.h). Errors: KINGLET_INVALID_ARGUMENT for running text without a
// vocabulary; those of reading the file.
Result<CalibrationInput> ReadCalibration(const std::string& path,
                                         const ModelDescription& description,
                                         std::span<const std::string> vocabulary);

// What a model file says, with quantisers of so many bits and bin frequencies from the input. The
// model runs as it is in the file, on the fastest backend of this build that computes in float.
// Errors: those of opening it and of measuring. REQUIRES: the weights are quantised.
Result<ModelDescription> Calibrated(const std::string& path, const CalibrationInput& input,
                                    int bits);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
