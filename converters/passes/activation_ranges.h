// Measures activation ranges from the absolute values that a model trained in floats computes on a
// text, at the points where activations may be quantised.
#ifndef KINGLET_CONVERTERS_PASSES_ACTIVATION_RANGES_H_
#define KINGLET_CONVERTERS_PASSES_ACTIVATION_RANGES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "converters/passes/magnitudes.h"
#include "converters/texts/masked_file.h"
#include "converters/texts/pair_file.h"
#include "kinglet/status.h"

namespace kinglet {

class Model;

// Ranges at a layer's seven quantisers (TransformerLayerQuantisers).
struct LayerRanges {
  float attention_input = 0, qkv = 0, weights = 0, attended = 0, inner_input = 0, inner = 0,
        outer = 0;
};
struct ActivationRanges {
  std::vector<LayerRanges> layers;
  float output = 0;  // the final hidden state
};

// Ranges in a layer's attention to the source (CrossAttentionQuantisers).
struct CrossRanges {
  float input = 0, query = 0, key_value = 0, weights = 0, attended = 0;
};
// Ranges of an encoder-decoder.
struct TranslationRanges {
  ActivationRanges encoder, decoder;  // encoder.output is the range of the encoded source
  std::vector<CrossRanges> cross;     // [layers of the decoder]
};

// Ranges of a recurrent decoder.
struct RecurrentRanges {
  float input = 0;             // the embedding
  std::vector<float> outputs;  // [layers]; the last output is the final hidden state
};

// Largest absolute values in a recurrent decoder's attention (GlobalAttention).
struct AttentionRanges {
  float query = 0, weights = 0, joined = 0, output = 0;
};
// Ranges of a recurrent encoder-decoder. `encoder.outputs` are ranges of both directions.
struct RecurrentTranslationRanges {
  RecurrentRanges encoder, decoder;
  AttentionRanges attention;
};

using SharedModel = std::shared_ptr<const Model>;

// Each function runs the model over the tokens in one stream. REQUIRES: its decoder has no
// quantisers; its backend computes in float. Errors: KINGLET_UNSUPPORTED for a decoder of another
// kind; those of stepping the model; KINGLET_NOT_FINITE if an activation overflows.
Result<ActivationRanges> MeasureRanges(const SharedModel& model, std::span<const uint32_t> tokens,
                                       const RangeRule& rule = {});
Result<RecurrentRanges> MeasureRecurrentRanges(const SharedModel& model,
                                               std::span<const uint32_t> tokens,
                                               const RangeRule& rule = {});
// Like MeasureRanges, for a masked model over texts, each unchanged and with masks (ReadMasked).
Result<ActivationRanges> MeasureMaskedRanges(const SharedModel& model,
                                             std::span<const MaskedText> texts,
                                             const RangeRule& rule = {});
// Like MeasureRanges, for a model with an encoder over pairs, each in a stream of its own as
// `kinglet score` runs them. Errors name the pair.
Result<TranslationRanges> MeasureTranslationRanges(const SharedModel& model,
                                                   std::span<const SentencePair> pairs,
                                                   const RangeRule& rule = {});
Result<RecurrentTranslationRanges> MeasureRecurrentTranslationRanges(
    const SharedModel& model, std::span<const SentencePair> pairs, const RangeRule& rule = {});

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_ACTIVATION_RANGES_H_
