// The family `espnet-rnn-lm`: an embedding, one nn.LSTM, nn.GRU or nn.RNN of several layers, and a
// softmax, perhaps tied.
// Framework: ESPnet 2, lm: seq_rnn (SequentialRNNLM). Files: Nepoch.pth and
// valid.*.ave_Kbest.pth, with config.yaml next to them. Peculiarities: averaging unties tables,
// whose values stay equal; a sentence begins and ends with <sos/eos>, the last token.
#ifndef KINGLET_CONVERTERS_FAMILIES_ESPNET_RNN_H_
#define KINGLET_CONVERTERS_FAMILIES_ESPNET_RNN_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kEspnetRnnFamily = "espnet-rnn-lm";

bool LooksLikeEspnetRnn(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> EspnetRnnOptions();

// "rnn_type" and "nlayers" of lm_conf describe the layers; widths follow from the shapes. Errors:
// those of ReadEspnetConfig, LoadRecurrent and SetEspnetTokens.
Result<LoadedModel> LoadEspnetRnn(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ESPNET_RNN_H_
