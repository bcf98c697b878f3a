#include "tests/synthesis/network_outline.h"

#include <optional>
#include <utility>

#include "format/overloaded.h"

namespace kinglet {
namespace {

constexpr uint32_t kOutlinedWindow = 512;  // of attention; no parameter depends on it

class NetworkOutliner {
 public:
  explicit NetworkOutliner(const NetworkOutline& network) : network_(network) {}

  ModelDraft Make() {
    ModelDescription& description = draft_.description;
    description.provenance.producer = "kinglet papers";
    description.provenance.source = network_.name;
    for (const OutlinedBand& band : network_.output) description.vocabulary_size += band.size;
    description.blocks.emplace_back(Embedding());
    std::visit(Overloaded{[&](const OutlinedTransformer& layers) {
                            hidden_ = network_.width;
                            description.blocks.emplace_back(Layers(layers));
                          },
                          [&](const OutlinedLstm& layers) {
                            hidden_ = layers.units.back();
                            description.blocks.emplace_back(Layers(layers));
                          }},
               network_.context);
    description.blocks.emplace_back(Softmax());
    return std::move(draft_);
  }

 private:
  TensorId Add(std::string name, Shape shape, bool derived = false) {
    draft_.tensors.push_back({std::move(name), std::move(shape), DenseF32{}, false, derived});
    return static_cast<TensorId>(draft_.tensors.size() - 1);
  }

  AdaptiveEmbedding Embedding() {
    AdaptiveEmbedding embedding{"input", network_.width, 1, {}};
    uint32_t first = 0;
    for (const OutlinedBand& band : network_.input) {
      const std::string name = "input." + std::to_string(embedding.bins.size()) + ".";
      EmbeddingBin bin{first, band.size, Add(name + "table", {band.size, band.columns}), {}};
      if (band.projected) {
        const bool first_one = embedding.bins.empty() || !network_.one_projection;
        bin.projection = first_one ? Add(name + "projection", {network_.width, band.columns})
                                   : embedding.bins.front().projection;
      }
      embedding.bins.push_back(bin);
      first += band.size;
    }
    for (const Shape& shape : network_.computed_from) {
      Add("made." + std::to_string(draft_.tensors.size()), shape);
    }
    if (embedding.bins.empty()) {
      const uint32_t words = draft_.description.vocabulary_size;
      embedding.bins.push_back(
          {0, words, Add("input.computed", {words, network_.width}, true), {}});
    }
    bins_ = embedding.bins;
    return embedding;
  }

  TransformerLayer Layer(const OutlinedTransformer& layers, const std::string& name) {
    const uint64_t width = network_.width, attended = uint64_t{layers.heads} * layers.key_size;
    const bool biases = layers.host == OutlinedTransformer::Host::kFairseq;
    TransformerLayer layer{};
    layer.attention_norm_gain = Add(name + "attention_norm.gain", {width});
    layer.attention_norm_bias = Add(name + "attention_norm.bias", {width});
    layer.qkv_weight = Add(name + "qkv", {3 * attended, width});
    layer.out_weight = Add(name + "out", {width, attended});
    if (biases) {
      layer.qkv_bias = Add(name + "qkv.bias", {3 * attended});
      layer.out_bias = Add(name + "out.bias", {width});
    } else {
      layer.positions = Add(name + "positions", {attended, width});
      layer.content_bias = content_bias_;
      layer.position_bias = position_bias_;
    }
    layer.inner_norm_gain = Add(name + "inner_norm.gain", {width});
    layer.inner_norm_bias = Add(name + "inner_norm.bias", {width});
    layer.inner_weight = Add(name + "inner", {layers.inner, width});
    layer.inner_bias = Add(name + "inner.bias", {layers.inner});
    layer.outer_weight = Add(name + "outer", {width, layers.inner});
    layer.outer_bias = Add(name + "outer.bias", {width});
    return layer;
  }

  TransformerDecoder Layers(const OutlinedTransformer& layers) {
    const TensorId frequencies = Add("context.frequencies", {network_.width / 2}, true);
    TransformerDecoder decoder{};
    decoder.name = "context";
    decoder.width = network_.width;
    decoder.heads = layers.heads;
    decoder.key_size = decoder.value_size = layers.key_size;
    decoder.window = kOutlinedWindow;
    decoder.epsilon = 1e-5;
    if (layers.host == OutlinedTransformer::Host::kFairseq) {
      decoder.norm_order = NormOrder::kPre;
      decoder.positions = AbsoluteSinusoids{frequencies, 2};
    } else {
      decoder.norm_order = NormOrder::kPost;
      decoder.positions = RelativeSinusoids{frequencies, std::nullopt};
      content_bias_ = Add("context.content_bias", {layers.heads, layers.key_size});
      position_bias_ = Add("context.position_bias", {layers.heads, layers.key_size});
    }
    for (uint32_t i = 0; i < layers.layers; ++i) {
      decoder.layers.push_back(Layer(layers, "context." + std::to_string(i) + "."));
    }
    return decoder;
  }

  RecurrentDecoder Layers(const OutlinedLstm& layers) {
    RecurrentDecoder decoder{"context", network_.width, std::nullopt, {}};
    uint64_t inputs = network_.width;
    for (const uint32_t units : layers.units) {
      const std::string name = "context." + std::to_string(decoder.layers.size()) + ".";
      const uint64_t rows = uint64_t{GatesOf(RecurrentCell::kLstm)} * units;
      RecurrentLayer layer{};
      layer.cell = RecurrentCell::kLstm;
      layer.units = units;
      layer.input_weight = Add(name + "input", {rows, inputs});
      layer.input_bias = Add(name + "input.bias", {rows});
      layer.recurrent_weight = Add(name + "recurrent", {rows, units});
      layer.recurrent_bias = Add(name + "recurrent.bias", {rows});
      decoder.layers.push_back(layer);
      inputs = units;
    }
    return decoder;
  }

  TensorId OutputTable(size_t band, const std::string& name) {
    if (network_.tied_tables) return bins_[band].table;
    return Add(name + "table", {network_.output[band].size, network_.output[band].columns});
  }

  AdaptiveSoftmax Softmax() {
    const std::vector<OutlinedBand>& bands = network_.output;
    const OutlinedBand& head = bands.front();
    AdaptiveSoftmax softmax{};
    softmax.name = "output";
    softmax.width = hidden_;
    softmax.head_size = head.size;
    if (head.projected) {
      softmax.head_projection = Add("output.head.projection", {head.columns, hidden_},
                                    network_.tied_projections || network_.tied_head_projection);
    }
    softmax.head_table = OutputTable(0, "output.head.");
    if (network_.biases) softmax.head_bias = Add("output.head.bias", {head.size});
    const uint64_t tails = bands.size() - 1;
    if (tails == 0) return softmax;
    softmax.cluster_weight = Add("output.clusters", {tails, head.columns});
    if (network_.biases) softmax.cluster_bias = Add("output.clusters.bias", {tails});
    uint32_t first = head.size;
    for (size_t band = 1; band < bands.size(); ++band) {
      const std::string name = "output." + std::to_string(band) + ".";
      SoftmaxTail tail{};
      tail.first = first;
      tail.size = bands[band].size;
      tail.cluster_row = static_cast<uint32_t>(band - 1);
      if (bands[band].projected) {
        tail.projection =
            Add(name + "projection", {bands[band].columns, hidden_}, network_.tied_projections);
      }
      tail.table = OutputTable(band, name);
      if (network_.biases) tail.bias = Add(name + "bias", {bands[band].size});
      softmax.tails.push_back(tail);
      first += tail.size;
    }
    return softmax;
  }

  const NetworkOutline& network_;
  ModelDraft draft_;
  uint32_t hidden_ = 0;  // width of the last layer's output
  std::vector<EmbeddingBin> bins_;
  std::optional<TensorId> content_bias_, position_bias_;
};

}  // namespace

ModelDraft Outline(const NetworkOutline& network) { return NetworkOutliner(network).Make(); }

}  // namespace kinglet
