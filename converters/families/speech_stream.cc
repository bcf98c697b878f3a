#include "converters/families/speech_stream.h"

#include <cmath>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "kernels/sinusoids.h"

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

std::vector<float> SinusoidFrequencies(uint32_t width) {
  const auto slope = static_cast<float>(-(std::log(10000.0) / width));
  std::vector<float> frequencies;
  for (uint32_t column = 0; column < width; column += 2) {
    const float exponent = static_cast<float>(column) * slope;
    frequencies.push_back(static_cast<float>(std::exp(double{exponent})));
  }
  return frequencies;
}

std::vector<float> SinusoidTable(uint32_t positions, uint32_t width) {
  const std::vector<float> frequencies = SinusoidFrequencies(width);
  std::vector<float> table;
  table.reserve(uint64_t{positions} * width);
  for (uint32_t position = 0; position < positions; ++position) {
    for (uint32_t column = 0; column < width; ++column) {
      const float angle = static_cast<float>(position) * frequencies[column / 2];
      table.push_back(static_cast<float>(column % 2 == 0 ? Sine(angle) : Cosine(angle)));
    }
  }
  return table;
}

std::vector<float> ScaledBy(double factor, std::vector<float> values) {
  for (float& value : values) value = static_cast<float>(factor * double{value});
  return values;
}

uint32_t CountLayers(std::span<const CheckpointTensor> weights, const std::string& prefix,
                     const std::string& suffix) {
  uint32_t layers = 0;
  while (HasTensor(weights, prefix + std::to_string(layers) + suffix)) ++layers;
  return layers;
}

}  // namespace kinglet
