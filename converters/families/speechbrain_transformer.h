// The family `speechbrain-transformer-lm`: a Transformer with stored positions.
// Framework: SpeechBrain, lobes.models.transformer.TransformerLM. Files and tokens as for
// `speechbrain-rnn-lm`.
// Peculiarities:
//   * the embedding is multiplied by sqrt(its width), and a linear layer may map it to the model's
//   * norms come last unless "normalize_before", and in both cases one more comes after the layers;
//     the softmax reads a linear layer and its norm; epsilon 1e-6 everywhere
//   * no token attends to tokens with id 0, so the start token must be another
//   * the file has 2,500 positions; the original fails beyond, here a stream starts again
#ifndef KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_TRANSFORMER_H_
#define KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_TRANSFORMER_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kSpeechbrainTransformerFamily = "speechbrain-transformer-lm";

bool LooksLikeSpeechbrainTransformer(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> SpeechbrainTransformerOptions();

// Errors: those of ReadSpeechbrainConfig and SetSpeechbrainTokens; KINGLET_INVALID_CHECKPOINT for
// arguments that make another network, and for missing, unused and mis-shaped tensors, all in one
// message.
Result<LoadedModel> LoadSpeechbrainTransformer(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_TRANSFORMER_H_
