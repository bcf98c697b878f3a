// The family `icefall-rnn-lm`: an embedding, one nn.LSTM of several layers, and a softmax, perhaps
// tied.
// Training code: icefall, rnn_lm (RnnLmModel). Files: epoch-N.pt and others with the state dict as
// "model" beside the optimiser's state; pretrained.pt.
// Peculiarities: a sentence begins and ends with <sos/eos>, id 1 unless the file's "sos_id" and
// "eos_id" say otherwise. tokens.txt of the language folder has the pieces.
#ifndef KINGLET_CONVERTERS_FAMILIES_ICEFALL_RNN_H_
#define KINGLET_CONVERTERS_FAMILIES_ICEFALL_RNN_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/families/speech_stream.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kIcefallRnnFamily = "icefall-rnn-lm";

bool LooksLikeIcefallRnn(std::span<const SourceTensor> weights);

// Errors: those of LoadRecurrent, SetSentenceTokens and FindTokenList.
Result<LoadedModel> LoadIcefallRnn(const FamilyInput& input);

// The numbers "sos_id" and "eos_id" of what icefall saved; 1 where there is none.
SentenceTokens IcefallSentenceTokens(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ICEFALL_RNN_H_
