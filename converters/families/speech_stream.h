// What the language models of speech toolkits have in common (icefall, ESPnet, SpeechBrain): how a
// sentence begins and ends, and the table of sinusoids.
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

// w_a = 10000^(-2a / width) for 2a < width, rounded as PyTorch rounds
// exp(arange(0, width, 2) * -(ln 10000 / width)) in float32.
std::vector<float> SinusoidFrequencies(uint32_t width);
// [positions, width] in float32: sin(p w_a) in column 2a, cos(p w_a) in column 2a + 1.
std::vector<float> SinusoidTable(uint32_t positions, uint32_t width);

// The vector times `factor`, each entry rounded to float32 once.
std::vector<float> ScaledBy(double factor, std::vector<float> values);

// How many of the tensors "<prefix>0<suffix>", "<prefix>1<suffix>", .. there are, without a gap.
uint32_t CountLayers(std::span<const CheckpointTensor> weights, const std::string& prefix,
                     const std::string& suffix);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_SPEECH_STREAM_H_
