// Coded tables of published shapes, to be synthesised: Chen, Li & Sun 2020 ("Differentiable Product
// Quantization for End-to-End Embedding Compression") and Li et al. 2018 ("Slim Embedding Layers
// for Recurrent Neural Language Models").
#ifndef KINGLET_TESTS_SYNTHESIS_CODED_PRESETS_H_
#define KINGLET_TESTS_SYNTHESIS_CODED_PRESETS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/synthesis/coded_synthesis.h"

namespace kinglet {

struct CodedPreset {
  std::string_view source;  // where it is published
  CodedSynthesisSpec spec;  // `name` is the preset's
};

std::vector<CodedPreset> CodedPresets();
std::optional<CodedPreset> FindCodedPreset(std::string_view name);

// A line for each preset, under a line of titles.
std::string CodedPresetTable();

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_CODED_PRESETS_H_
