// The family `espnet-transformer-lm`: a Transformer decoder with the norm first.
// Framework: ESPnet 2, lm: transformer (TransformerLM). Files: Nepoch.pth and
// valid.*.ave_Kbest.pth, with config.yaml next to them; also with the names of older versions
// ("input_layer." and "norm." of the encoder). Peculiarities:
//   * the embedding goes through a linear layer, layer normalisation (epsilon 1e-5) and ReLU; all
//     other norms have epsilon 1e-12
//   * without "pos_enc" the network has no positions; with sinusoids, the output of the ReLU is
//     first multiplied by sqrt(width): conversion multiplies gain and bias of the norm before the
//     ReLU, rounded to float32 once
//   * no token attends to tokens with id 0
//   * start and end token as for `espnet-rnn-lm`
#ifndef KINGLET_CONVERTERS_FAMILIES_ESPNET_TRANSFORMER_H_
#define KINGLET_CONVERTERS_FAMILIES_ESPNET_TRANSFORMER_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kEspnetTransformerFamily = "espnet-transformer-lm";

bool LooksLikeEspnetTransformer(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> EspnetTransformerOptions();

// Errors: those of ReadEspnetConfig and SetEspnetTokens; KINGLET_INVALID_CHECKPOINT for options
// that make another network, and for missing, unused and mis-shaped tensors, all in one message.
Result<LoadedModel> LoadEspnetTransformer(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ESPNET_TRANSFORMER_H_
