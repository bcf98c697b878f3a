#include "tests/synthesis/coded_synthesis.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

#include "converters/passes/slim_mapping.h"
#include "format/limits.h"
#include "tests/synthesis/random_values.h"

namespace kinglet {
namespace {

// Entries of all tensors together: 4 GiB of float32.
constexpr uint64_t kMaxEntries = uint64_t{1} << 30;

Status CheckRange(const std::string& name, uint64_t least, uint64_t most, uint64_t found) {
  if (found >= least && found <= most) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "synthesis", name,
                         std::to_string(least) + " to " + std::to_string(most),
                         std::to_string(found));
}

Status CheckTable(const std::string& name, const CodedTableSpec& table, uint32_t cols) {
  KINGLET_RETURN_IF_ERROR(CheckRange(name + " positions", 1, kMaxExtent, table.positions));
  if (cols % table.positions != 0) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "synthesis", name + " positions",
                           "a divisor of the width, " + std::to_string(cols),
                           std::to_string(table.positions));
  }
  if (table.pools.size() != 1 && table.pools.size() != table.positions) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "synthesis", name + " pools",
                           "1, or " + std::to_string(table.positions),
                           std::to_string(table.pools.size()));
  }
  for (const uint32_t pool : table.pools) {
    KINGLET_RETURN_IF_ERROR(CheckRange(name + " pool", 1, kMaxDimension, pool));
  }
  return {};
}

Status CheckSpec(const CodedSynthesisSpec& spec) {
  KINGLET_RETURN_IF_ERROR(CheckRange("vocabulary size", 2, kMaxDimension, spec.vocabulary_size));
  KINGLET_RETURN_IF_ERROR(CheckRange("width", 1, kMaxExtent, spec.width));
  KINGLET_RETURN_IF_ERROR(CheckRange("layers", 1, kMaxLayers, spec.units.size()));
  for (const uint32_t units : spec.units) {
    KINGLET_RETURN_IF_ERROR(CheckRange("units", 1, kMaxExtent, units));
  }
  if (spec.bits != 0) {
    KINGLET_RETURN_IF_ERROR(CheckRange("bits", kMinBits, kMaxBits,
                                       spec.bits < 0 ? 0 : static_cast<uint64_t>(spec.bits)));
  }
  KINGLET_RETURN_IF_ERROR(CheckTable("input", spec.input, spec.width));
  if (!spec.output) return {};
  return CheckTable("output", *spec.output, spec.units.back());
}

class Outline {
 public:
  explicit Outline(const CodedSynthesisSpec& spec) : spec_(spec) {}

  ModelDraft Make() {
    ModelDescription& description = draft_.description;
    description.vocabulary_size = spec_.vocabulary_size;
    description.provenance.producer = "kinglet synthesise";
    description.provenance.family = "coded";
    description.provenance.source = spec_.name + ", random weights";
    description.provenance.options = "seed " + std::to_string(spec_.seed);
    if (spec_.bits != 0) {
      description.provenance.options += ", bits " + std::to_string(spec_.bits);
    }
    const TensorId input = AddCoded("embed.table", spec_.width, spec_.input);
    description.blocks.emplace_back(AdaptiveEmbedding{
        "embed", spec_.width, 1, {{0, spec_.vocabulary_size, input, std::nullopt}}});
    description.blocks.emplace_back(Layers());
    description.blocks.emplace_back(Softmax());
    return std::move(draft_);
  }

 private:
  TensorId Add(const std::string& name, const Shape& shape) {
    EncodedTensor tensor{name, shape, DenseF32{}, false};
    if (spec_.bits != 0 && shape.size() == 2) {
      tensor.values = Quantised{spec_.bits, ScaleRule::kMultiplyPerTensor, {}, {}};
    }
    draft_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(draft_.tensors.size() - 1);
  }
  TensorId AddCoded(const std::string& name, uint32_t cols, const CodedTableSpec& table) {
    CodingScheme scheme;
    scheme.positions = table.positions;
    scheme.pools = table.pools;
    scheme.codebook = Add(name + ".codebook", {scheme.PoolTotal(), cols / table.positions});
    draft_.tensors.push_back(
        {name, {spec_.vocabulary_size, cols}, Coded{std::move(scheme), {}}, false});
    return static_cast<TensorId>(draft_.tensors.size() - 1);
  }

  RecurrentDecoder Layers() {
    RecurrentDecoder decoder{"lstm", spec_.width, std::nullopt, {}};
    uint64_t inputs = spec_.width;
    for (size_t i = 0; i < spec_.units.size(); ++i) {
      const uint32_t units = spec_.units[i];
      const uint64_t rows = uint64_t{GatesOf(RecurrentCell::kLstm)} * units;
      const std::string prefix = "lstm." + std::to_string(i) + ".";
      RecurrentLayer layer{};
      layer.cell = RecurrentCell::kLstm;
      layer.units = units;
      layer.input_weight = Add(prefix + "input.weight", {rows, inputs});
      layer.input_bias = Add(prefix + "bias", {rows});
      layer.recurrent_weight = Add(prefix + "recurrent.weight", {rows, units});
      decoder.layers.push_back(layer);
      inputs = units;
    }
    return decoder;
  }

  AdaptiveSoftmax Softmax() {
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = spec_.units.back();
    softmax.head_size = spec_.vocabulary_size;
    softmax.head_table = spec_.output
                             ? AddCoded("softmax.table", softmax.width, *spec_.output)
                             : Add("softmax.table", {spec_.vocabulary_size, softmax.width});
    if (spec_.output_bias) softmax.head_bias = Add("softmax.bias", {spec_.vocabulary_size});
    return softmax;
  }

  const CodedSynthesisSpec& spec_;
  ModelDraft draft_;
};

// Codebooks of embeddings give activations near 1, matrices keep them, logits are within a unit.
float LimitOf(const EncodedTensor& tensor) {
  if (tensor.shape.size() == 1) return 0.25F;
  if (tensor.name == "embed.table.codebook") return 1;
  return 1 / (kRootMeanSquare * std::sqrt(static_cast<float>(Cols(tensor.shape))));
}

Status Fill(uint64_t seed, EncodedTensor& tensor) {
  const SplitMix64 random = GeneratorOf(seed, tensor.name);
  if (auto* coded = std::get_if<Coded>(&tensor.values)) {
    const CodingScheme& scheme = coded->scheme;
    KINGLET_ASSIGN_OR_RETURN(coded->codes, ShuffledCodes(tensor.shape, scheme.positions,
                                                         scheme.pools, SplitMix64(random).Next()));
  } else if (const auto* quantised = std::get_if<Quantised>(&tensor.values)) {
    tensor.values = RandomCodes(Count(tensor.shape), LimitOf(tensor), quantised->bits, random);
  } else {
    tensor.values = DenseF32{RandomValues(Count(tensor.shape), 0, LimitOf(tensor), random)};
  }
  return {};
}

}  // namespace

Result<ModelDraft> OutlineCoded(const CodedSynthesisSpec& spec) {
  KINGLET_RETURN_IF_ERROR(CheckSpec(spec));
  return Outline(spec).Make();
}

Result<ModelDraft> SynthesiseCoded(const CodedSynthesisSpec& spec) {
  KINGLET_ASSIGN_OR_RETURN(ModelDraft draft, OutlineCoded(spec));
  uint64_t entries = 0;
  for (const EncodedTensor& tensor : draft.tensors) {
    const auto* coded = std::get_if<Coded>(&tensor.values);
    entries +=
        coded == nullptr ? Count(tensor.shape) : Rows(tensor.shape) * coded->scheme.positions;
    if (entries > kMaxEntries) break;
  }
  KINGLET_RETURN_IF_ERROR(CheckRange("entries of all tensors", 1, kMaxEntries, entries));
  for (EncodedTensor& tensor : draft.tensors) KINGLET_RETURN_IF_ERROR(Fill(spec.seed, tensor));
  return draft;
}

}  // namespace kinglet
