#include "converters/families/define_source.h"

#include <cmath>
#include <utility>

namespace kinglet {
namespace {

// Claims the tensors of one input, layer after layer.
class Claims {
 public:
  Claims(DraftBuilder& builder, std::string prefix)
      : builder_(builder), prefix_(std::move(prefix)) {}

  bool Has(const std::string& name) const { return builder_.Has(prefix_ + name); }

  // A tensor of so many dimensions, none of them 0 or beyond the widest; null if there is none.
  const SourceTensor* OfRank(const std::string& name, size_t rank, const std::string& expected) {
    const SourceTensor* tensor = builder_.ClaimUnshaped(prefix_ + name);
    if (tensor == nullptr) return nullptr;
    bool fits = tensor->shape.size() == rank;
    for (const uint64_t size : tensor->shape) fits = fits && size > 0;
    if (fits) return tensor;
    builder_.NoteMisshaped(*tensor, expected);
    return nullptr;
  }
  const SourceTensor* Shaped(const std::string& name, const Shape& shape) {
    return builder_.Claim(prefix_ + name, shape);
  }
  void Misshaped(const SourceTensor* tensor, const std::string& expected) {
    builder_.NoteMisshaped(*tensor, expected);
  }
  // A tensor that says nothing to inference.
  void Leftover(const std::string& name) { builder_.ClaimUnshaped(prefix_ + name, false); }

  // Map's bands: tables `table`.0.weight, .1.weight .. and projections to n features.
  void Bands(const std::string& table, const std::string& projection, bool scaled) {
    size_t index = 0;
    do {
      const std::string name = "." + std::to_string(index) + ".weight";
      DefineSource::Band band;
      band.table = OfRank(table + name, 2, "[words, width]");
      if (band.table == nullptr) return;
      const uint64_t width = band.table->shape[1];
      if (source.unit.map_width == 0) source.unit.map_width = width;
      band.projection = Shaped(projection + name, {source.unit.map_width, width});
      if (scaled) band.scale = std::sqrt(static_cast<double>(width));
      source.bands.push_back(band);
      ++index;
    } while (Has(table + "." + std::to_string(index) + ".weight"));
  }

  // Features that the next layer's input has with and without e.
  uint64_t previous() const { return OutputWidth(source.unit); }
  uint64_t Joined() const { return previous() + EWidth(); }
  uint64_t EWidth() const {
    return source.unit.entry_layers == 0 ? source.unit.map_width : source.unit.layers[0].out;
  }

  void Add(DefineLayer layer, const DefineSource::Layer& tensors) {
    source.unit.layers.push_back(layer);
    source.layers.push_back(tensors);
  }

  DefineSource source;

 private:
  DraftBuilder& builder_;
  std::string prefix_;
};

// An ungrouped layer as torch.nn.Linear has it; false where the weight is not there.
bool SetLinear(Claims& claims, const std::string& weight, uint64_t in, DefineLayer& layer,
               DefineSource::Layer& tensors) {
  tensors.weight = claims.OfRank(weight, 2, "[out, " + std::to_string(in) + "]");
  if (tensors.weight == nullptr) return false;
  layer.in = tensors.weight->shape[1];
  layer.out = tensors.weight->shape[0];
  layer.layout = DefineLayer::Layout::kOutIn;
  if (layer.in == in) return true;
  claims.Misshaped(tensors.weight, "[out, " + std::to_string(in) + "]");
  return false;
}

// Reduce, the last layer: an ungrouped one with a bias and nothing after it.
void AddReduce(Claims& claims, const std::string& name) {
  DefineLayer layer;
  DefineSource::Layer tensors;
  if (!SetLinear(claims, name + ".weight", claims.previous(), layer, tensors)) return;
  tensors.bias = claims.Shaped(name + ".bias", {layer.out});
  claims.Add(layer, tensors);
}

// A grouped layer with a matrix [groups, in / groups, out / groups].
bool SetGroupLinear(Claims& claims, const std::string& weight, uint64_t in, DefineLayer& layer,
                    DefineSource::Layer& tensors) {
  const std::string expected = "[groups, " + std::to_string(in) + " / groups, out / groups]";
  tensors.weight = claims.OfRank(weight, 3, expected);
  if (tensors.weight == nullptr) return false;
  const Shape& shape = tensors.weight->shape;
  layer.groups = shape[0];
  layer.in = in;
  if (in % shape[0] != 0 || in / shape[0] != shape[1] || shape[2] > kLargestDefineWidth) {
    claims.Misshaped(tensors.weight, expected);
    return false;
  }
  layer.out = shape[0] * shape[2];
  return true;
}

}  // namespace

DefineSource ClaimAwdDefine(DraftBuilder& builder, const std::string& prefix) {
  Claims claims(builder, prefix);
  claims.Bands("embeddings.embeds", "embeddings.projcs", false);
  size_t index = 0;
  do {
    const std::string name = "define.weights." + std::to_string(index) + ".";
    DefineLayer layer;
    DefineSource::Layer tensors;
    layer.weights = DefineLayer::Weights::kShared;
    layer.layout = DefineLayer::Layout::kOutIn;
    layer.bias = DefineLayer::Bias::kShared;
    layer.order = DefineLayer::Order::kPreviousFirst;
    if (index > 0) layer.skip = DefineLayer::Skip::kMix;
    layer.in = index > 0 ? claims.Joined() : claims.previous();
    const std::string expected = "[out / groups, " + std::to_string(layer.in) + " / groups]";
    tensors.weight = claims.OfRank(name + "weight", 2, expected);
    if (tensors.weight == nullptr) break;
    const Shape& shape = tensors.weight->shape;
    if (layer.in % shape[1] != 0 || shape[0] > kLargestDefineWidth) {
      claims.Misshaped(tensors.weight, expected);
      break;
    }
    layer.groups = layer.in / shape[1];
    layer.out = layer.groups * shape[0];
    tensors.bias = claims.Shaped(name + "bias", {shape[0]});
    claims.Add(layer, tensors);
    ++index;
  } while (claims.Has("define.weights." + std::to_string(index) + ".weight"));

  AddReduce(claims, "define.finalProj");
  return std::move(claims.source);
}

DefineSource ClaimDelightDefine(DraftBuilder& builder, const std::string& prefix,
                                const DelightDefineOptions& options) {
  Claims claims(builder, prefix);
  DefineUnit& unit = claims.source.unit;
  const SourceTensor* entry = builder.Find(prefix + "dextra_layer.input_layer.weights");
  if (entry != nullptr && entry->shape.size() == 2) unit.map_width = entry->shape[1];
  if (claims.Has("map_layer.embeddings.0.weight")) {
    claims.Bands("map_layer.embeddings", "map_layer.projections", options.scaled_map);
    claims.Leftover("map_layer._float_tensor");
  } else {
    DefineSource::Band band;
    band.table = claims.OfRank("map_layer.weight", 2, "[words, n]");
    if (band.table != nullptr && band.table->shape[1] != unit.map_width) {
      claims.Misshaped(band.table, "[words, " + std::to_string(unit.map_width) + "]");
    }
    claims.source.bands.push_back(band);
    if (options.scaled_map) unit.map_scale = std::sqrt(static_cast<double>(unit.map_width));
  }

  // One layer, grouped if its weight has three dimensions. Its input is e and the previous output
  // but for the first two.
  const auto add = [&](const std::string& name) {
    DefineLayer layer;
    DefineSource::Layer tensors;
    const SourceTensor* weight = builder.Find(prefix + name + "weights");
    const bool grouped = weight != nullptr && weight->shape.size() == 3;
    const bool skips = unit.layers.size() > 1;
    if (skips) layer.skip = grouped ? DefineLayer::Skip::kMix : DefineLayer::Skip::kConcatenate;
    const uint64_t in = skips ? claims.Joined() : claims.previous();
    const auto set = grouped ? SetGroupLinear : SetLinear;
    if (!set(claims, name + "weights", in, layer, tensors)) return false;
    const uint64_t width = layer.out / layer.groups;
    if (claims.Has(name + "bias")) {
      tensors.bias =
          claims.Shaped(name + "bias", grouped ? Shape{layer.groups, 1, width} : Shape{layer.out});
    } else {
      layer.bias = DefineLayer::Bias::kNone;
    }
    if (claims.Has(name + "normalization_fn.weight")) {
      layer.norm = DefineLayer::Norm::kPerGroup;
      layer.norm_epsilon = options.norm_epsilon;
      tensors.norm_gain = claims.Shaped(name + "normalization_fn.weight", {width});
      tensors.norm_offset = claims.Shaped(name + "normalization_fn.bias", {width});
    }
    if (grouped && options.shuffled) layer.shuffle = DefineLayer::Shuffle::kBeforeNorm;
    layer.activation = options.activation;
    claims.Add(layer, tensors);
    return true;
  };

  if (!add("dextra_layer.input_layer.")) return std::move(claims.source);
  unit.entry_layers = 1;
  size_t index = 0;
  const auto name = [&index] {
    return "dextra_layer.dextra_layers." + std::to_string(index) + ".";
  };
  do {
    if (!add(name())) return std::move(claims.source);
    ++index;
  } while (claims.Has(name() + "weights"));
  add("dextra_layer.output_layer.");
  return std::move(claims.source);
}

DefineSource ClaimPlainDefine(DraftBuilder& builder, const std::string& prefix) {
  Claims claims(builder, prefix);
  claims.Bands("base.emb", "base.proj", false);
  size_t index = 0;
  do {
    const std::string name = "layers." + std::to_string(index) + ".";
    DefineLayer layer;
    DefineSource::Layer tensors;
    layer.activation = DefineLayer::Activation::kRelu;
    if (index > 0) layer.skip = DefineLayer::Skip::kMix;
    const uint64_t in = index > 0 ? claims.Joined() : claims.previous();
    if (!SetGroupLinear(claims, name + "weight", in, layer, tensors)) break;
    tensors.bias = claims.Shaped(name + "bias", {layer.groups, layer.out / layer.groups});
    claims.Add(layer, tensors);
    ++index;
  } while (claims.Has("layers." + std::to_string(index) + ".weight"));

  AddReduce(claims, "reduce");
  return std::move(claims.source);
}

Result<DefineInput> ReadDefine(const DefineSource& source) {
  KINGLET_RETURN_IF_ERROR(CheckUnit(source.unit));
  const auto read = [](const SourceTensor* tensor, std::vector<float>& values) -> Status {
    if (tensor == nullptr) return {};
    KINGLET_ASSIGN_OR_RETURN(values, ReadFinite(*tensor));
    return {};
  };
  DefineInput input;
  input.unit = source.unit;
  for (const DefineSource::Band& band : source.bands) {
    DefineBand& to = input.map.emplace_back();
    to.words = band.table->shape[0];
    to.width = band.table->shape[1];
    to.scale = band.scale;
    KINGLET_RETURN_IF_ERROR(read(band.table, to.table));
    KINGLET_RETURN_IF_ERROR(read(band.projection, to.projection));
  }
  for (const DefineSource::Layer& layer : source.layers) {
    DefineWeights& to = input.weights.emplace_back();
    KINGLET_RETURN_IF_ERROR(read(layer.weight, to.weight));
    KINGLET_RETURN_IF_ERROR(read(layer.bias, to.bias));
    KINGLET_RETURN_IF_ERROR(read(layer.norm_gain, to.norm_gain));
    KINGLET_RETURN_IF_ERROR(read(layer.norm_offset, to.norm_offset));
  }
  return input;
}

}  // namespace kinglet
