#include "tests/synthesis/coded_presets.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "converters/passes/sub_vectors.h"

namespace kinglet {
namespace {

enum class Sharing : uint8_t { kOnePool, kPoolEach };

// The papers compress a network's embedding only. Here the rest of the network is one LSTM unit, so
// that a file stores little more than the table.
struct DpqRow {
  const char* name;
  const char* source;
  uint32_t vocabulary, width, choices, positions;
  Sharing sharing;
};
constexpr auto kDpq = std::to_array<DpqRow>({
    {"dpq-ptb-small-sx", "PTB, LSTM of 200", 10000, 200, 8, 25, Sharing::kOnePool},
    {"dpq-ptb-small-vq", "PTB, LSTM of 200", 10000, 200, 32, 25, Sharing::kOnePool},
    {"dpq-ptb-medium-sx", "PTB, LSTM of 650", 10000, 650, 32, 50, Sharing::kOnePool},
    {"dpq-ptb-sx", "PTB, LSTM of 650, fewer positions", 10000, 650, 32, 25, Sharing::kOnePool},
    {"dpq-ptb-large-sx", "PTB, LSTM of 1500", 10000, 1500, 16, 50, Sharing::kOnePool},
    {"dpq-envi-sx", "IWSLT15 En-Vi", 17191, 512, 32, 32, Sharing::kPoolEach},
    {"dpq-envi-vq", "IWSLT15 En-Vi", 17191, 512, 128, 128, Sharing::kPoolEach},
    {"dpq-vien-sx", "IWSLT15 Vi-En", 7709, 512, 32, 32, Sharing::kPoolEach},
    {"dpq-vien-vq", "IWSLT15 Vi-En", 7709, 512, 128, 128, Sharing::kPoolEach},
    {"dpq-bert", "BERT's words", 30522, 768, 32, 128, Sharing::kPoolEach},
});

// The pools have M = positions * vocabulary / share sub-vectors. Embedding and LSTM have the same
// width.
struct SlimRow {
  const char* name;
  const char* source;
  uint32_t vocabulary, width, layers, positions, input_share, output_share;
};
constexpr auto kSlim = std::to_array<SlimRow>({
    {"slim-ptb-300", "PTB, 20 % of the input's and of the output's parameters", 10000, 300, 2, 10,
     5, 5},
    {"slim-billion-2", "One Billion Words, 2 layers", 793471, 2048, 2, 8, 32, 8},
    {"slim-billion-3", "One Billion Words, 3 layers", 793471, 2048, 3, 8, 32, 16},
});

CodedPreset PresetOf(const DpqRow& row) {
  CodedSynthesisSpec spec;
  spec.name = row.name;
  spec.vocabulary_size = row.vocabulary;
  spec.width = row.width;
  spec.input.positions = row.positions;
  spec.input.pools.assign(row.sharing == Sharing::kOnePool ? 1 : row.positions, row.choices);
  return {row.source, std::move(spec)};
}

CodedPreset PresetOf(const SlimRow& row) {
  const auto sub_vectors = [&row](uint32_t share) {
    const uint64_t used = uint64_t{row.vocabulary} * row.positions;
    return (used + share - 1) / share;
  };
  CodedSynthesisSpec spec;
  spec.name = row.name;
  spec.vocabulary_size = row.vocabulary;
  spec.width = row.width;
  spec.input = {row.positions, {static_cast<uint32_t>(sub_vectors(row.input_share))}};
  spec.units.assign(row.layers, row.width);
  spec.output = {row.positions, EvenPools(sub_vectors(row.output_share), row.positions)};
  spec.output_bias = true;
  return {row.source, std::move(spec)};
}

std::string Text(const std::optional<CodedTableSpec>& table) {
  if (!table) return "dense";
  const uint64_t sum = std::accumulate(table->pools.begin(), table->pools.end(), uint64_t{0});
  return std::to_string(table->positions) + " of " + std::to_string(sum) +
         (table->pools.size() == 1 ? "" : ", a pool each");
}

}  // namespace

std::vector<CodedPreset> CodedPresets() {
  std::vector<CodedPreset> presets;
  for (const DpqRow& row : kDpq) presets.push_back(PresetOf(row));
  for (const SlimRow& row : kSlim) presets.push_back(PresetOf(row));
  return presets;
}

std::optional<CodedPreset> FindCodedPreset(std::string_view name) {
  std::vector<CodedPreset> presets = CodedPresets();
  const auto found =
      std::find_if(presets.begin(), presets.end(),
                   [name](const CodedPreset& preset) { return preset.spec.name == name; });
  if (found == presets.end()) return std::nullopt;
  return std::move(*found);
}

std::string CodedPresetTable() {
  std::string text;
  const auto line = [&text](const char* name, const char* words, const char* width,
                            const std::string& input, const char* units, const std::string& output,
                            const std::string& source) {
    char cells[160];
    std::snprintf(cells, sizeof(cells), "%-19s%-11s%-7s%-25s%-16s%-25s", name, words, width,
                  input.c_str(), units, output.c_str());
    text += cells + source + "\n";
  };
  line("preset", "vocabulary", "width", "input's sub-vectors", "LSTM units", "output's sub-vectors",
       "source");
  for (const CodedPreset& preset : CodedPresets()) {
    const CodedSynthesisSpec& spec = preset.spec;
    std::string units;
    for (const uint32_t layer : spec.units) {
      units += (units.empty() ? "" : ",") + std::to_string(layer);
    }
    line(spec.name.c_str(), std::to_string(spec.vocabulary_size).c_str(),
         std::to_string(spec.width).c_str(), Text(spec.input), units.c_str(), Text(spec.output),
         std::string(preset.source));
  }
  return text;
}

}  // namespace kinglet
