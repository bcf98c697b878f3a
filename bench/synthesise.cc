// Writes a model with random weights: a published MicroNet configuration or coded model, with
// parameters changed by options. bench/README.md shows its use.
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/quoted.h"
#include "format/write_file.h"
#include "format/writer.h"
#include "tests/synthesis/coded_presets.h"
#include "tests/synthesis/presets.h"
#include "tests/synthesis/synthesis.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

struct Options {
  bool list = false;
  std::string preset, output, sparsities;
  std::optional<uint64_t> seed;
  std::optional<uint32_t> window, cache;
  std::optional<int> bits;
  std::optional<double> sparsity;
};

Status Refuse(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "sparsities", where, expected, found);
}

Status AddSparsity(const std::string& where, const nlohmann::json& name,
                   const nlohmann::json& sparsity, Sparsities& sparsities) {
  if (!name.is_string()) return Refuse(where, "a tensor's name", name.dump());
  if (!sparsity.is_number()) {
    return Refuse(where + ", " + QuotedName(name.get<std::string>()), "a number", sparsity.dump());
  }
  sparsities[name.get<std::string>()] = sparsity.get<double>();
  return {};
}

// {"name": sparsity, ...}, or {"tensors": [{"tensor": "name", "final_sparsity": sparsity}, ...]}.
Result<Sparsities> ReadSparsities(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return Status::Refusal(KINGLET_IO_ERROR, "sparsities", path, "a file to read", "none");
  }
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) {
    return Refuse(path, "a JSON object", json.is_discarded() ? "invalid JSON" : json.type_name());
  }
  Sparsities sparsities;
  const auto tensors = json.find("tensors");
  if (tensors == json.end()) {
    for (const auto& [name, sparsity] : json.items()) {
      KINGLET_RETURN_IF_ERROR(AddSparsity(path, name, sparsity, sparsities));
    }
    return sparsities;
  }
  if (!tensors->is_array()) return Refuse(path + ", tensors", "an array", tensors->type_name());
  for (const auto& tensor : *tensors) {
    if (!tensor.is_object() || !tensor.contains("tensor") || !tensor.contains("final_sparsity")) {
      return Refuse(path + ", tensors", "objects with tensor and final_sparsity", tensor.dump());
    }
    KINGLET_RETURN_IF_ERROR(
        AddSparsity(path, tensor["tensor"], tensor["final_sparsity"], sparsities));
  }
  return sparsities;
}

Result<SynthesisSpec> SpecOf(const Options& options) {
  const std::optional<Preset> preset = FindPreset(options.preset);
  if (!preset) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "preset", "--preset", "a preset from --list",
                           QuotedName(options.preset));
  }
  SynthesisSpec spec = preset->spec;
  spec.seed = options.seed.value_or(spec.seed);
  spec.window = options.window.value_or(spec.window);
  spec.cache = options.cache.value_or(spec.cache);
  spec.bits = options.bits.value_or(spec.bits);
  if (options.sparsity) {
    spec.sparsities.clear();
    spec.other_sparsity = *options.sparsity;
  }
  if (!options.sparsities.empty()) {
    KINGLET_ASSIGN_OR_RETURN(spec.sparsities, ReadSparsities(options.sparsities));
  }
  return spec;
}

Result<ModelDraft> CodedDraft(CodedSynthesisSpec spec, const Options& options) {
  if (options.window || options.cache || options.sparsity || !options.sparsities.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "preset", QuotedName(options.preset),
                           "only the options --seed and --bits", "others");
  }
  spec.seed = options.seed.value_or(spec.seed);
  spec.bits = options.bits.value_or(spec.bits);
  return SynthesiseCoded(spec);
}

Result<ModelDraft> DraftOf(const Options& options) {
  if (std::optional<CodedPreset> coded = FindCodedPreset(options.preset)) {
    return CodedDraft(std::move(coded->spec), options);
  }
  KINGLET_ASSIGN_OR_RETURN(const SynthesisSpec spec, SpecOf(options));
  return Synthesise(spec);
}

Status Run(const Options& options) {
  KINGLET_ASSIGN_OR_RETURN(ModelDraft draft, DraftOf(options));
  uint64_t parameters = 0, nonzeros = 0;
  for (const EncodedTensor& tensor : draft.tensors) {
    if (!tensor.coded()) parameters += Count(tensor.shape);
    nonzeros += CountNonzeros(tensor);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, SerialiseModel(draft));
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(bytes, options.output));
  std::printf("%s: %zu bytes, %llu parameters, %llu not zero\n", options.output.c_str(),
              bytes.size(), static_cast<unsigned long long>(parameters),
              static_cast<unsigned long long>(nonzeros));
  return {};
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  kinglet::ArgumentParser program(
      "Writes a model with random weights and a published configuration.", "synthesise");
  kinglet::Options options;
  using kinglet::Option;
  const Option list = program.AddFlag("--list", options.list, "print the presets and exit");
  program.Add("--preset", options.preset, "preset from --list").Excludes(list);
  program.Add("-o,--output", options.output, "model file to write");
  program.Add("--seed", options.seed, "seed of the random weights (default: 1)");
  program.Add("--window", options.window, "attention window: n_seq + 1 tokens");
  program.Add("--cache", options.cache, "capacity of the neural cache in words; 0: no cache");
  program.Add("--bits", options.bits, "bits of weights and activations; 0: float32");
  const Option sparsity = program.Add("--sparsity", options.sparsity,
                                      "sparsity of every tensor that the framework prunes");
  program.Add("--sparsities", options.sparsities, "JSON file: {\"tensor\": sparsity, ...}")
      .Excludes(sparsity);
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  if (!options.list && (options.preset.empty() || options.output.empty())) {
    std::fputs("synthesise: usage: expected --list, or --preset and -o\n", stderr);
    return 2;
  }
  if (options.list) {
    std::printf("%s\n%s", kinglet::PresetTable().c_str(), kinglet::CodedPresetTable().c_str());
    return 0;
  }
  kinglet::Status status;
  try {
    status = kinglet::Run(options);
  } catch (const std::exception& error) {  // mainly std::bad_alloc
    status = kinglet::Status::Refusal(KINGLET_INTERNAL, "synthesis", options.preset,
                                      "memory for the model", error.what());
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "synthesise: %s\n", status.message().c_str());
  return 1;
}
