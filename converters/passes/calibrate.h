// Activation quantisers for a model that was trained in floats: their ranges are the largest
// absolute values that a text makes the model compute. The text also says how often the words of
// each bin occur.
#ifndef KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
#define KINGLET_CONVERTERS_PASSES_CALIBRATE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

// Largest absolute values at the seven points of a layer (as TransformerLayerQuantisers).
struct LayerRanges {
  float attention_input = 0, qkv = 0, weights = 0, attended = 0, inner_input = 0, inner = 0,
        outer = 0;
};
struct ActivationRanges {
  std::vector<LayerRanges> layers;
  float output = 0;  // the final hidden state
};

// Of a recurrent decoder: the embedding, and each layer's output.
struct RecurrentRanges {
  float input = 0;
  std::vector<float> outputs;  // the last is the final hidden state's
};

// The ids of a text's words. Words that are not in the vocabulary become <unk>, if that is.
// Errors: as ForEachWord's; KINGLET_UNKNOWN_WORD naming the word; KINGLET_INVALID_ARGUMENT for a
// text without words.
Result<std::vector<uint32_t>> ReadCalibrationText(const std::string& path,
                                                  std::span<const std::string> vocabulary);

// Runs the model over the tokens. REQUIRES: its decoder is of the kind and has no quantisers.
// Errors: as opening a model and stepping it; KINGLET_NOT_FINITE where an activation overflows.
Result<ActivationRanges> MeasureRanges(const ModelDraft& draft, std::span<const uint32_t> tokens);
Result<RecurrentRanges> MeasureRecurrentRanges(const ModelDraft& draft,
                                               std::span<const uint32_t> tokens);

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
void SetQuantisers(const ActivationRanges& ranges, int bits, ModelDraft& draft);
void SetQuantisers(const RecurrentRanges& ranges, int bits, ModelDraft& draft);

// Records how many of the tokens lie in each bin of the embedding.
void SetBinFrequencies(std::span<const uint32_t> tokens, ModelDraft& draft);

// All of it. REQUIRES: draft.vocabulary is not empty; the weights are quantised.
Status Calibrate(const std::string& text, int bits, ModelDraft& draft);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CALIBRATE_H_
