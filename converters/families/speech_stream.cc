#include "converters/families/speech_stream.h"

#include "converters/checkpoints/refuse_checkpoint.h"

namespace kinglet {
namespace {

constexpr uint32_t kUnlimitedWindow = 1024;

}  // namespace

Status SetSentenceTokens(const SentenceTokens& tokens, const std::string& where,
                         ModelDescription& description) {
  for (const uint64_t token : {tokens.start, tokens.end}) {
    if (token < description.vocabulary_size) continue;
    return RefuseCheckpoint(
        where,
        "start and end tokens below the " + std::to_string(description.vocabulary_size) + " words",
        std::to_string(token));
  }
  description.start_token = static_cast<uint32_t>(tokens.start);
  description.end_token = static_cast<uint32_t>(tokens.end);
  return {};
}

uint32_t AttentionWindow(const FamilyInput& input, std::vector<std::string>& notes) {
  if (input.memory_length) return *input.memory_length + 1;
  notes.push_back("a token attends to the last " + std::to_string(kUnlimitedWindow) +
                  " tokens, the original to all; --mem-len N makes it N tokens and itself");
  return kUnlimitedWindow;
}

Result<uint32_t> PositionsUsed(const FamilyInput& input, uint32_t stored) {
  if (!input.memory_length || stored == 0) return stored;
  if (*input.memory_length < stored) return *input.memory_length + 1;
  return RefuseCheckpoint("mem-len",
                          "below the checkpoint's " + std::to_string(stored) + " positions",
                          std::to_string(*input.memory_length));
}

uint32_t CountLayers(std::span<const CheckpointTensor> weights, const std::string& prefix,
                     const std::string& suffix) {
  uint32_t layers = 1;
  while (HasTensor(weights, prefix + std::to_string(layers) + suffix)) ++layers;
  return layers;
}

}  // namespace kinglet
