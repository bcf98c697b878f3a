// What a model that was trained in floats computes on a text: the largest absolute values at the
// points where activations may be rounded to integers.
#ifndef KINGLET_CONVERTERS_PASSES_ACTIVATION_RANGES_H_
#define KINGLET_CONVERTERS_PASSES_ACTIVATION_RANGES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "converters/texts/pair_file.h"
#include "kinglet/status.h"
#include "runtime/model.h"

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

// Largest absolute values of a layer's attention to the source (as CrossAttentionQuantisers).
struct CrossRanges {
  float input = 0, query = 0, key_value = 0, weights = 0, attended = 0;
};
// Of an encoder-decoder.
struct TranslationRanges {
  ActivationRanges encoder, decoder;  // the encoder's output: the encoded source
  std::vector<CrossRanges> cross;     // by layer of the decoder
};

// Of a recurrent decoder: the embedding, and each layer's output.
struct RecurrentRanges {
  float input = 0;
  std::vector<float> outputs;  // the last is the final hidden state's
};

using SharedModel = std::shared_ptr<const Model>;

// Runs the model over the tokens. REQUIRES: its decoder has no quantisers; its backend computes in
// float. Errors: KINGLET_UNSUPPORTED for a decoder of another kind; those of stepping it;
// KINGLET_NOT_FINITE where an activation overflows.
Result<ActivationRanges> MeasureRanges(const SharedModel& model, std::span<const uint32_t> tokens);
Result<RecurrentRanges> MeasureRecurrentRanges(const SharedModel& model,
                                               std::span<const uint32_t> tokens);
// The same of a model with an encoder over pairs, each from a fresh stream, as scoring feeds them.
// Errors name the pair.
Result<TranslationRanges> MeasureTranslationRanges(const SharedModel& model,
                                                   std::span<const SentencePair> pairs);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_ACTIVATION_RANGES_H_
