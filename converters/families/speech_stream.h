// What the language models of speech toolkits have in common (icefall, ESPnet, SpeechBrain): how a
// sentence begins and ends.
#ifndef KINGLET_CONVERTERS_FAMILIES_SPEECH_STREAM_H_
#define KINGLET_CONVERTERS_FAMILIES_SPEECH_STREAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

// The tokens that begin and end a sentence; neither occurs in a text.
struct SentenceTokens {
  uint64_t start = 0, end = 0;
};

// Sets the description's tokens. Errors: KINGLET_INVALID_CHECKPOINT, naming `where`, unless the
// vocabulary has them.
Status SetSentenceTokens(const SentenceTokens& tokens, const std::string& where,
                         ModelDescription& description);

// How many tokens a Transformer without a limit of its own attends to: the option's, or 1,024,
// which a note for the user then reports.
uint32_t AttentionWindow(const FamilyInput& input, std::vector<std::string>& notes);

// How many of the checkpoint's positions a model uses: as many as the option's tokens and the token
// itself, or all. `stored` is 0 if the checkpoint lacks its table. Errors:
// KINGLET_INVALID_CHECKPOINT for more than are stored.
Result<uint32_t> PositionsUsed(const FamilyInput& input, uint32_t stored);

// How many of the tensors "<prefix>0<suffix>", "<prefix>1<suffix>", .. there are, without a gap; at
// least 1, as a network has a layer.
uint32_t CountLayers(std::span<const CheckpointTensor> weights, const std::string& prefix,
                     const std::string& suffix);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_SPEECH_STREAM_H_
