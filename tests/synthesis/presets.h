// Every published MicroNet configuration, to be synthesised: the paper (Yan et al. 2020, "MicroNet
// for Efficient Language Modeling") and the files of mit-han-lab/neurips-micronet.
#ifndef KINGLET_TESTS_SYNTHESIS_PRESETS_H_
#define KINGLET_TESTS_SYNTHESIS_PRESETS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/synthesis/synthesis.h"

namespace kinglet {

struct Preset {
  std::string_view source;  // where it is published
  SynthesisSpec spec;       // `name` is the preset's
};

std::vector<Preset> Presets();
std::optional<Preset> FindPreset(std::string_view name);

// A line for each preset, under a line of titles.
std::string PresetTable();

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_PRESETS_H_
