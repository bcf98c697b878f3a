#include "tests/synthesis/synthesis.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <variant>

#include "converters/families/families.h"
#include "converters/families/micronet_config.h"
#include "converters/families/neurips_micronet.h"
#include "converters/passes/calibrate.h"
#include "converters/passes/pack.h"
#include "converters/passes/prune.h"
#include "converters/passes/quantise.h"
#include "format/limits.h"
#include "format/message_text.h"
#include "kernels/functions.h"
#include "tests/synthesis/random_values.h"

namespace kinglet {
namespace {

// Entries of all tensors together: 4 GiB of float32.
constexpr uint64_t kMaxSynthesisEntries = uint64_t{1} << 30;

// The largest activations that networks of these weights reach, rounded up: measured at the 8.3 M
// shapes, which a test repeats. They cannot overflow, as activations beyond them are clamped.
constexpr struct {
  float attention_input, qkv, weights, attended, inner_input, inner, outer;
} kLayerRanges = {6, 6, 1, 4, 6, 6, 2};
constexpr float kOutputRange = 10;

Status Refuse(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "synthesis", where, expected, found);
}

Status CheckRange(const char* name, uint64_t least, uint64_t most, uint64_t found) {
  if (found >= least && found <= most) return {};
  const std::string range = least == most ? "" : " to " + std::to_string(most);
  return Refuse(name, std::to_string(least) + range, std::to_string(found));
}

Status CheckShapes(const SynthesisSpec& spec) {
  KINGLET_RETURN_IF_ERROR(
      CheckRange("number of widths", 1, kMaxBins, static_cast<uint64_t>(spec.widths.size())));
  KINGLET_RETURN_IF_ERROR(CheckRange("number of cutoffs", spec.widths.size() - 1,
                                     spec.widths.size() - 1, spec.cutoffs.size()));
  for (const uint32_t width : spec.widths) {
    KINGLET_RETURN_IF_ERROR(CheckRange("width", 1, kMaxExtent, width));
  }
  uint64_t first = 0;
  for (const uint32_t cutoff : spec.cutoffs) {
    KINGLET_RETURN_IF_ERROR(CheckRange("cutoff", first + 1, kMaxDimension - 1, cutoff));
    first = cutoff;
  }
  KINGLET_RETURN_IF_ERROR(
      CheckRange("vocabulary size", first + 1, kMaxDimension, spec.vocabulary_size));
  KINGLET_RETURN_IF_ERROR(CheckRange("layers", 1, kMaxLayers, spec.layers));
  KINGLET_RETURN_IF_ERROR(CheckRange("heads", 1, kMaxExtent, spec.heads));
  KINGLET_RETURN_IF_ERROR(CheckRange("key size", 1, kMaxExtent, spec.key_size));
  KINGLET_RETURN_IF_ERROR(CheckRange("value size", 1, kMaxExtent, spec.value_size));
  KINGLET_RETURN_IF_ERROR(CheckRange("inner width", 1, kMaxExtent, spec.inner));
  KINGLET_RETURN_IF_ERROR(CheckRange("window", 1, kMaxExtent, spec.window));
  return CheckRange("cache", 0, kMaxCacheCapacity, spec.cache);
}

Status CheckSparsity(const std::string& where, double sparsity) {
  if (sparsity >= 0 && sparsity <= 1) return {};  // NaN is neither
  return Refuse(where, "0 to 1", NumberText(sparsity));
}

Status CheckNumbers(const SynthesisSpec& spec) {
  if (spec.bits != 0 && (spec.bits < kMinBits || spec.bits > kMaxBits)) {
    return Refuse("bits", "0, or " + std::to_string(kMinBits) + " to " + std::to_string(kMaxBits),
                  std::to_string(spec.bits));
  }
  if (spec.cache != 0 && !(spec.cache_theta > 0 && std::isfinite(spec.cache_theta))) {
    return Refuse("cache theta", "a number above 0", NumberText(spec.cache_theta));
  }
  if (spec.cache != 0 && !(spec.cache_lambda > 0 && spec.cache_lambda < 1)) {
    return Refuse("cache lambda", "a number between 0 and 1", NumberText(spec.cache_lambda));
  }
  KINGLET_RETURN_IF_ERROR(CheckSparsity("sparsity", spec.other_sparsity));
  for (const auto& [name, sparsity] : spec.sparsities) {
    KINGLET_RETURN_IF_ERROR(CheckSparsity("sparsity of " + Quoted(name), sparsity));
  }
  if (spec.bin_counts.empty()) return {};
  KINGLET_RETURN_IF_ERROR(CheckRange("number of bin counts", spec.widths.size(), spec.widths.size(),
                                     spec.bin_counts.size()));
  for (const uint64_t count : spec.bin_counts) {
    KINGLET_RETURN_IF_ERROR(CheckRange("bin count", 1, uint64_t{1} << 53, count));
  }
  return {};
}

MicronetConfig ConfigOf(const SynthesisSpec& spec) {
  MicronetConfig config;
  config.vocabulary_size = spec.vocabulary_size;
  config.width = spec.widths.front();
  uint32_t first = 0;
  for (size_t i = 0; i < spec.widths.size(); ++i) {
    const uint32_t end = i < spec.cutoffs.size() ? spec.cutoffs[i] : spec.vocabulary_size;
    config.bins.push_back({first, end - first, spec.widths[i]});
    first = end;
  }
  config.layers = spec.layers;
  config.heads = spec.heads;
  config.key_size = spec.key_size;
  config.value_size = spec.value_size;
  config.inner = spec.inner;
  config.context = spec.window - 1;
  if (spec.bits != 0) config.bits = spec.bits;
  if (spec.cache != 0) {
    config.cache = MicronetCache{spec.cache, {false, spec.cache_theta}, {false, spec.cache_lambda}};
  }
  return config;
}

// A state dict whose random values are generated on reading. Scales keep activations near 1 and
// logits within a few units. An embedding has half the root mean square of an activation, so the
// tied softmax favours a repeated word without giving it all the probability.
class RandomStateDict {
 public:
  RandomStateDict(const SynthesisSpec& spec, const MicronetConfig& config)
      : spec_(spec), config_(config) {}

  CheckpointTensors Make() {
    for (size_t i = 0; i < config_.bins.size(); ++i) AddBin(i);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      AddLayer("layers." + std::to_string(i) + ".");
    }
    if (config_.bits) AddQuantiser("quant", kOutputRange);
    if (config_.bins.size() > 1) AddClusters();
    return std::move(weights_);
  }

 private:
  void Add(const std::string& name, const Shape& shape, float centre, float limit) {
    weights_.push_back({name, shape, [=, seed = spec_.seed] {
                          return Result<std::vector<float>>(
                              RandomValues(Count(shape), centre, limit, GeneratorOf(seed, name)));
                        }});
  }
  void Give(const std::string& name, const Shape& shape, std::vector<float> values) {
    weights_.push_back(
        {name, shape, [values = std::move(values)] { return Result<std::vector<float>>(values); }});
  }
  // Maps inputs of root mean square 1 to outputs of root mean square `gain`.
  void AddMatrix(const std::string& name, uint64_t rows, uint64_t cols, float gain) {
    Add(name, {rows, cols}, 0, gain / (kRootMeanSquare * std::sqrt(static_cast<float>(cols))));
  }
  void AddBias(const std::string& name, uint64_t count) { Add(name, {count}, 0, 0.25F); }

  void AddBin(size_t i) {
    const MicronetBin& bin = config_.bins[i];
    const std::string layer = "loss.layers." + std::to_string(i);
    AddMatrix(layer + ".weight", bin.size, bin.width, 0.5F);
    AddBias(layer + ".bias", bin.size);
    if (i == 0) return;
    const std::string projection = "projections." + std::to_string(i - 1) + ".weight";
    const float width = static_cast<float>(config_.width);
    Add("embed." + projection, {config_.width, bin.width}, 0,
        1 / (kRootMeanSquare * std::sqrt(width)));
    AddMatrix("loss." + projection, bin.width, config_.width, 1);
  }

  void AddLayer(const std::string& prefix) {
    const uint64_t d = config_.width;
    const uint64_t attended = uint64_t{config_.heads} * config_.value_size;
    const uint64_t qkv = attended + 2 * uint64_t{config_.heads} * config_.key_size;
    Add(prefix + "pos_emb", {config_.key_size, spec_.window}, 0, 0.75F);
    AddNorm(prefix + "ln1.", d);
    AddMatrix(prefix + "qkv.weight", qkv, d, 1);
    AddBias(prefix + "qkv.bias", qkv);
    AddMatrix(prefix + "out.weight", d, attended, 0.5F);
    AddNorm(prefix + "ln2.", d);
    AddMatrix(prefix + "fc.0.weight", config_.inner, d, 1);
    AddBias(prefix + "fc.0.bias", config_.inner);
    AddMatrix(prefix + "fc.3.weight", d, config_.inner, 0.5F);
    AddBias(prefix + "fc.3.bias", d);
    if (!config_.bits) return;
    AddQuantiser(prefix + "quant_ln1", kLayerRanges.attention_input);
    AddQuantiser(prefix + "quant_qkv", kLayerRanges.qkv);
    AddQuantiser(prefix + "quant_attn", kLayerRanges.weights);
    AddQuantiser(prefix + "quant_attnv", kLayerRanges.attended);
    AddQuantiser(prefix + "quant_ln2", kLayerRanges.inner_input);
    AddQuantiser(prefix + "fc.1", kLayerRanges.inner);
    AddQuantiser(prefix + "fc.4", kLayerRanges.outer);
  }

  void AddNorm(const std::string& prefix, uint64_t width) {
    Add(prefix + "weight", {width}, 1, 0.25F);
    Add(prefix + "bias", {width}, 0, 0.25F);
  }

  void AddQuantiser(const std::string& name, float range) {
    const ActivationQuantiser quantiser = QuantiserFor(range, *config_.bits);
    Give(name + ".max_abs", {1}, {quantiser.max_abs});
    Give(name + ".inv_scale", {}, {quantiser.scale});
  }

  // Cluster logits that give each cluster its bin's probability, against head words with logits
  // near 0. Rows are in reverse order of the bins. Uses kinglet's logarithm, because the last bit
  // of the C library's differs between machines.
  void AddClusters() {
    const uint64_t clusters = config_.bins.size() - 1;
    AddMatrix("loss.clusters.weight", clusters, config_.width, 0.25F);
    if (spec_.bin_counts.empty()) return AddBias("loss.clusters.bias", clusters);
    std::vector<float> logits;
    for (uint64_t bin = clusters; bin > 0; --bin) {
      const double ratio = static_cast<double>(spec_.bin_counts[bin]) /
                           static_cast<double>(spec_.bin_counts[0]) * config_.bins[0].size;
      logits.push_back(Log(static_cast<float>(ratio)));
    }
    Give("loss.clusters.bias", {clusters}, std::move(logits));
  }

  const SynthesisSpec& spec_;
  const MicronetConfig& config_;
  CheckpointTensors weights_;
};

uint64_t ZerosOf(double sparsity, const EncodedTensor& tensor) {
  return static_cast<uint64_t>(std::round(sparsity * static_cast<double>(Count(tensor.shape))));
}

void PruneTo(uint64_t zeros, EncodedTensor& tensor) {
  const uint64_t entries = Count(tensor.shape);
  if (zeros >= entries) {
    auto& values = std::get<DenseF32>(tensor.values).values;
    std::fill(values.begin(), values.end(), 0.0F);
  } else {
    PruneTensor((static_cast<double>(zeros) + 0.5) / static_cast<double>(entries), tensor);
  }
}

// How many entries of each tensor are zero: the nearest integer to the tensor's sparsity.
Result<std::vector<uint64_t>> ZerosByTensor(const SynthesisSpec& spec, const LoadedModel& model) {
  const std::vector<EncodedTensor>& tensors = model.draft.tensors;
  std::vector<uint64_t> zeros(tensors.size(), 0);
  for (const TensorId id : model.prunable) zeros[id] = ZerosOf(spec.other_sparsity, tensors[id]);
  for (const auto& [name, sparsity] : spec.sparsities) {
    const auto found = std::find_if(
        tensors.begin(), tensors.end(),
        [stored = StoredName(name)](const EncodedTensor& tensor) { return tensor.name == stored; });
    if (found == tensors.end()) {
      return Refuse("sparsities", "names of the network's tensors", Quoted(name));
    }
    zeros[static_cast<size_t>(found - tensors.begin())] = ZerosOf(sparsity, *found);
  }
  return zeros;
}

Status CheckEntries(const CheckpointTensors& weights) {
  uint64_t entries = 0;
  for (const CheckpointTensor& tensor : weights) {
    entries += tensor.shape.empty() ? 1 : Count(tensor.shape);  // each is below 2^52
    if (entries > kMaxSynthesisEntries) break;
  }
  return CheckRange("entries of all tensors", 0, kMaxSynthesisEntries, entries);
}

Provenance ProvenanceOf(const SynthesisSpec& spec) {
  Provenance provenance;
  provenance.producer = "kinglet synthesise";
  provenance.family = std::string(kMicronet.name);
  provenance.source = spec.name + ", random weights";
  provenance.options = "seed " + std::to_string(spec.seed);
  if (spec.bits != 0) provenance.options += ", bits " + std::to_string(spec.bits);
  return provenance;
}

// How often the words of each bin occur, where that is published.
void SetFrequencies(const SynthesisSpec& spec, ModelDraft& draft) {
  for (Block& block : draft.description.blocks) {
    auto* embedding = std::get_if<AdaptiveEmbedding>(&block);
    if (embedding == nullptr || spec.bin_counts.empty()) continue;
    for (size_t i = 0; i < embedding->bins.size(); ++i) {
      embedding->bins[i].tokens = spec.bin_counts[i];
    }
  }
}

// The network as the family reads it, without values.
Result<LoadedModel> Load(const SynthesisSpec& spec) {
  KINGLET_RETURN_IF_ERROR(CheckShapes(spec));
  KINGLET_RETURN_IF_ERROR(CheckNumbers(spec));
  const MicronetConfig config = ConfigOf(spec);
  const CheckpointTensors weights = RandomStateDict(spec, config).Make();
  KINGLET_RETURN_IF_ERROR(CheckEntries(weights));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, MicronetDraft(config, weights));
  SetFrequencies(spec, model.draft);
  model.draft.description.provenance = ProvenanceOf(spec);
  return model;
}

}  // namespace

std::string StoredName(std::string_view state_dict_name) {
  constexpr std::string_view kInput = "embed.layers.", kOutput = "loss.layers.";
  std::string name(state_dict_name);
  if (state_dict_name.starts_with(kInput)) name.replace(0, kInput.size(), kOutput);
  return name;
}

Result<SynthesisOutline> OutlineMicronet(const SynthesisSpec& spec) {
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, Load(spec));
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint64_t> nonzeros, ZerosByTensor(spec, model));
  std::vector<EncodedTensor>& tensors = model.draft.tensors;
  for (size_t i = 0; i < tensors.size(); ++i) nonzeros[i] = Count(tensors[i].shape) - nonzeros[i];
  if (spec.bits != 0) {
    for (const TensorId id : model.quantisable) {
      const bool matrix = tensors[id].shape.size() == 2;
      tensors[id].values = Quantised{
          spec.bits, matrix ? ScaleRule::kMultiplyPerRow : ScaleRule::kDividePerTensor, {}, {}};
    }
  }
  return SynthesisOutline{std::move(model.draft), std::move(nonzeros)};
}

Result<ModelDraft> Synthesise(const SynthesisSpec& spec) {
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, Load(spec));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> zeros, ZerosByTensor(spec, model));
  KINGLET_RETURN_IF_ERROR(ReadTensors(model));
  for (size_t i = 0; i < zeros.size(); ++i) {
    if (zeros[i] > 0) PruneTo(zeros[i], model.draft.tensors[i]);
  }
  if (spec.bits != 0) {
    for (const TensorId id : model.quantisable) QuantiseTensor(spec.bits, model.draft.tensors[id]);
  }
  for (EncodedTensor& tensor : model.draft.tensors) ChooseMask(tensor);
  return std::move(model.draft);
}

}  // namespace kinglet
