#include "converters/families/transformer_xl_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/draft_builder.h"
#include "converters/families/transformer_values.h"
#include "converters/families/transformer_xl_tables.h"
#include "converters/matrix_order.h"
#include "format/blocks.h"
#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

Status CheckSize(const char* what, int64_t value, uint64_t most) {
  if (value > 0 && static_cast<uint64_t>(value) <= most) return {};
  return RefuseCheckpoint(what, "1 to " + std::to_string(most), std::to_string(value));
}

Status CheckNetworkSizes(const TransformerXlNetwork& network) {
  KINGLET_RETURN_IF_ERROR(CheckSize("n_token", network.words, kMaxDimension));
  KINGLET_RETURN_IF_ERROR(CheckSize("d_model", network.width, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("d_embed", network.embedding_width, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("n_head", network.heads, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("d_head", network.head_size, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(
      CheckSize("n_head x d_head", network.heads * network.head_size, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("n_layer", network.layers, kMaxLayers));
  KINGLET_RETURN_IF_ERROR(CheckSize("div_val", network.divisor, kMaxExtent));
  if (network.width % 2 != 0) {
    return RefuseCheckpoint("d_model", "an even number", std::to_string(network.width));
  }
  const int64_t least = network.same_length ? 1 : 0;
  const auto most = static_cast<int64_t>(kMaxExtent) - 1;
  if (network.memory_length < least || network.memory_length > most) {
    return RefuseCheckpoint(
        std::string("mem_len") + (network.same_length ? " with same_length" : ""),
        std::to_string(least) + " to " + std::to_string(most),
        std::to_string(network.memory_length));
  }
  if (!(std::isfinite(network.epsilon) && network.epsilon > 0)) {
    return RefuseCheckpoint("epsilon of the layer norms", "a number above 0",
                            NumberText(network.epsilon));
  }
  return {};
}

class TransformerXlLoader {
 public:
  TransformerXlLoader(const TransformerXlNetwork& network,
                      std::span<const CheckpointTensor> weights)
      : network_(network),
        width_(static_cast<uint64_t>(network.width)),
        heads_(static_cast<uint64_t>(network.heads)),
        head_size_(static_cast<uint64_t>(network.head_size)),
        builder_(weights) {}

  Result<LoadedModel> Load() {
    KINGLET_ASSIGN_OR_RETURN(auto tables, TransformerXlTables::Make(network_, builder_));
    tables.Claim();
    const CheckpointTensor* frequencies =
        builder_.Claim(network_.prefix + "pos_emb.inv_freq", {width_ / 2});
    ClaimLayers();
    KINGLET_RETURN_IF_ERROR(builder_.CheckNames("a " + network_.family + " network"));
    KINGLET_RETURN_IF_ERROR(CheckSharedBiases());
    KINGLET_RETURN_IF_ERROR(tables.FindTies());
    builder_.model.draft.description.vocabulary_size = static_cast<uint32_t>(network_.words);
    AdaptiveSoftmax softmax = tables.DescribeSoftmax();
    std::vector<Block>& blocks = builder_.model.draft.description.blocks;
    blocks.emplace_back(tables.DescribeEmbedding());
    blocks.emplace_back(DescribeDecoder(*frequencies));
    blocks.emplace_back(std::move(softmax));
    builder_.DeferValues();
    return std::move(builder_.model);
  }

 private:
  struct Layer {
    std::string name;
    const CheckpointTensor *norm_gain, *norm_bias, *qkv, *positions, *out;
    const CheckpointTensor *content_bias, *position_bias;
    const CheckpointTensor *inner_norm_gain, *inner_norm_bias;
    const CheckpointTensor *inner_weight, *inner_bias, *outer_weight, *outer_bias;
  };

  // One of the two query biases (u and v in the paper) of a layer, or the one that all layers
  // share.
  const CheckpointTensor* ClaimQueryBias(const std::string& attention, const char* name) {
    const std::string shared = network_.prefix + name;
    const Shape shape = {heads_, head_size_};
    const bool own = builder_.Has(attention + name) || network_.own_query_biases.value_or(false);
    if (builder_.Has(shared) || !own) {
      const CheckpointTensor* all = builder_.Claim(shared, shape, !own);
      if (!own) return all;
    }
    return builder_.Claim(attention + name, shape);
  }

  // Refuses layers with biases of their own if the configuration states that all layers share them.
  // REQUIRES: CheckNames found nothing.
  Status CheckSharedBiases() const {
    if (network_.own_query_biases.value_or(true)) return {};
    const Layer& first = layers_.front();
    for (const Layer& layer : layers_) {
      for (const auto& [bias, shared] : {std::pair(layer.content_bias, first.content_bias),
                                         std::pair(layer.position_bias, first.position_bias)}) {
        KINGLET_ASSIGN_OR_RETURN(const bool same, SameParameter(*bias, *shared));
        if (same) continue;
        return RefuseCheckpoint(
            "tensor " + bias->name, "the values of " + shared->name + ", as untie_r is false",
            "other values (if each layer was trained with its own: set untie_r to "
            "true)");
      }
    }
    return {};
  }

  void ClaimLayers() {
    const uint64_t attended = heads_ * head_size_;
    for (int64_t i = 0; i < network_.layers; ++i) {
      Layer layer{};
      layer.name = network_.prefix + "layers." + std::to_string(i) + ".";
      const std::string attention = layer.name + "dec_attn.", inner = layer.name + "pos_ff.";
      const auto claim = [this](const std::string& name, const Shape& shape) {
        return builder_.Claim(name, shape);
      };
      layer.content_bias = ClaimQueryBias(attention, "r_w_bias");
      layer.position_bias = ClaimQueryBias(attention, "r_r_bias");
      layer.norm_gain = claim(attention + "layer_norm.weight", {width_});
      layer.norm_bias = claim(attention + "layer_norm.bias", {width_});
      layer.qkv = claim(attention + "qkv_net.weight", {3 * attended, width_});
      layer.positions = claim(attention + "r_net.weight", {attended, width_});
      layer.out = claim(attention + "o_net.weight", {width_, attended});
      layer.inner_norm_gain = claim(inner + "layer_norm.weight", {width_});
      layer.inner_norm_bias = claim(inner + "layer_norm.bias", {width_});
      const std::string inner_bias = inner + "CoreNet.0.bias";
      layer.inner_bias = network_.inner > 0
                             ? claim(inner_bias, {static_cast<uint64_t>(network_.inner)})
                             : builder_.ClaimUnshaped(inner_bias);
      const bool known = layer.inner_bias != nullptr && layer.inner_bias->shape.size() == 1;
      if (layer.inner_bias != nullptr && !known) {
        builder_.NoteMisshaped(*layer.inner_bias, "a vector");
      }
      const uint64_t units = known ? layer.inner_bias->shape[0] : 0;
      layer.inner_weight = builder_.ClaimIf(known, inner + "CoreNet.0.weight", {units, width_});
      layer.outer_weight = builder_.ClaimIf(known, inner + "CoreNet.3.weight", {width_, units});
      layer.outer_bias = claim(inner + "CoreNet.3.bias", {width_});
      layers_.push_back(layer);
    }
  }

  TransformerDecoder DescribeDecoder(const CheckpointTensor& frequencies) {
    TransformerDecoder decoder{};
    decoder.name = "decoder";
    decoder.width = static_cast<uint32_t>(width_);
    decoder.heads = static_cast<uint32_t>(heads_);
    decoder.key_size = decoder.value_size = static_cast<uint32_t>(head_size_);
    decoder.window = static_cast<uint32_t>(network_.memory_length + (network_.same_length ? 0 : 1));
    decoder.start = network_.zero_memory ? StreamStart::kZeros : StreamStart::kMasked;
    decoder.norm_order = network_.pre_norm ? NormOrder::kPre : NormOrder::kPost;
    decoder.epsilon = network_.epsilon;
    RelativeSinusoids positions{};
    positions.frequencies = builder_.AddWhole(frequencies, Role::kKept);
    builder_.MarkDerived(positions.frequencies);
    if (network_.clamp_length > 0) {
      positions.clamp = static_cast<uint32_t>(std::min(network_.clamp_length, int64_t{kMaxExtent}));
    }
    decoder.positions = positions;
    for (const Layer& layer : layers_) decoder.layers.push_back(DescribeLayer(layer));
    return decoder;
  }

  TransformerLayer DescribeLayer(const Layer& from) {
    const auto kept = [this](const CheckpointTensor* tensor) {
      return builder_.AddWhole(*tensor, Role::kKept);
    };
    TransformerLayer layer{};
    layer.attention_norm_gain = kept(from.norm_gain);
    layer.attention_norm_bias = kept(from.norm_bias);
    layer.qkv_weight =
        builder_.AddMade(from.qkv->name, from.qkv->shape, Role::kPrunedAlso, from.qkv,
                         [heads = heads_](const std::vector<float>& values) {
                           return RowsByHead(values, 3, heads);
                         });
    if (network_.zero_memory && network_.pre_norm) {
      const CheckpointTensor norm_bias = *from.norm_bias;
      layer.start = builder_.AddMade(
          from.name + "dec_attn.zero_memory", {2 * heads_ * head_size_}, Role::kKept, from.qkv,
          [norm_bias](const std::vector<float>& qkv) -> Result<std::vector<float>> {
            KINGLET_ASSIGN_OR_RETURN(const std::vector<float> bias, ReadFinite(norm_bias));
            return ZeroMemory(std::span(qkv).subspan(qkv.size() / 3), bias);  // keys and values
          });
      builder_.MarkDerived(*layer.start);
    }
    layer.positions = builder_.AddWhole(*from.positions, Role::kPrunedAlso);
    layer.content_bias = AddQueryBias(from.content_bias);
    layer.position_bias = AddQueryBias(from.position_bias);
    layer.out_weight = builder_.AddWhole(*from.out, Role::kPrunedAlso);
    layer.inner_norm_gain = kept(from.inner_norm_gain);
    layer.inner_norm_bias = kept(from.inner_norm_bias);
    layer.inner_weight = builder_.AddWhole(*from.inner_weight, Role::kPrunedAlso);
    layer.inner_bias = builder_.AddWhole(*from.inner_bias, Role::kQuantised);
    layer.outer_weight = builder_.AddWhole(*from.outer_weight, Role::kPrunedAlso);
    layer.outer_bias = builder_.AddWhole(*from.outer_bias, Role::kQuantised);
    return layer;
  }

  // Adds a query bias once, however many layers share it.
  TensorId AddQueryBias(const CheckpointTensor* tensor) {
    for (const auto& [known, id] : query_biases_) {
      if (known == tensor) return id;
    }
    query_biases_.emplace_back(tensor, builder_.AddWhole(*tensor, Role::kKept));
    return query_biases_.back().second;
  }

  const TransformerXlNetwork& network_;
  const uint64_t width_, heads_, head_size_;
  DraftBuilder builder_;
  std::vector<Layer> layers_;
  std::vector<std::pair<const CheckpointTensor*, TensorId>> query_biases_;
};

}  // namespace

Result<LoadedModel> LoadTransformerXlNetwork(const TransformerXlNetwork& network,
                                             std::span<const CheckpointTensor> weights) {
  KINGLET_RETURN_IF_ERROR(CheckNetworkSizes(network));
  return TransformerXlLoader(network, weights).Load();
}

}  // namespace kinglet
