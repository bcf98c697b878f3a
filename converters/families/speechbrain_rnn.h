// The family `speechbrain-rnn-lm`: an embedding, recurrent layers, dense layers with layer
// normalisation, and a softmax.
// Framework: SpeechBrain, lobes.models.RNNLM. Files: model.ckpt of a training, lm.ckpt as
// published, with hyperparams.yaml in the same folder or up to two folders up. Peculiarities: the
// names of dense layers have no number, _0, _1, ..; "bos_index" and "eos_index" begin and end a
// sentence; tokenizer.ckpt is a SentencePiece model.
#ifndef KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_RNN_H_
#define KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_RNN_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kSpeechbrainRnnFamily = "speechbrain-rnn-lm";

bool LooksLikeSpeechbrainRnn(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> SpeechbrainRnnOptions();

// Errors: those of ReadSpeechbrainConfig, LoadRecurrent and SetSpeechbrainTokens;
// KINGLET_INVALID_CHECKPOINT for arguments that make another network.
Result<LoadedModel> LoadSpeechbrainRnn(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_RNN_H_
