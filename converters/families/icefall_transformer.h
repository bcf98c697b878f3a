// The family `icefall-transformer-lm`: a Transformer with relative positions.
// Framework: icefall, transformer_lm (TransformerLM). Files: epoch-N.pt and others with the
// state dict as "model" next to the optimiser's state; pretrained.pt. Peculiarities:
//   * linear layers are stored without their scales: weight and bias are multiplied by exp of
//     "weight_scale" and "bias_scale", and rounded to float32 once
//   * BasicNorm divides by the root mean square; its epsilon is stored as a logarithm; a layer has
//     one norm, at its end
//   * queries are divided by sqrt(key size) before the biases of content and position are added,
//     so the biases of a model file, which are added first, are sqrt(key size) times as large
//   * the table of relative sinusoids is float32, sines and cosines alternate
//   * the activation is x sigmoid(x - 1)
//   * start and end token as for `icefall-rnn-lm`
#ifndef KINGLET_CONVERTERS_FAMILIES_ICEFALL_TRANSFORMER_H_
#define KINGLET_CONVERTERS_FAMILIES_ICEFALL_TRANSFORMER_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kIcefallTransformerFamily = "icefall-transformer-lm";

bool LooksLikeIcefallTransformer(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> IcefallTransformerOptions();

// All sizes follow from the tensors' shapes. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused
// and mis-shaped tensors, all in one message; those of SetSentenceTokens and FindTokenList.
Result<LoadedModel> LoadIcefallTransformer(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ICEFALL_TRANSFORMER_H_
