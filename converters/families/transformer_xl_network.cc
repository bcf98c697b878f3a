#include "converters/families/transformer_xl_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/transformer_xl_tables.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

Status CheckSize(const char* what, int64_t value, uint64_t most) {
  if (value > 0 && static_cast<uint64_t>(value) <= most) return {};
  return RefuseCheckpoint(what, "1 to " + std::to_string(most), std::to_string(value));
}

Status CheckNetworkSizes(const TransformerXlNetwork& settings) {
  KINGLET_RETURN_IF_ERROR(CheckSize("n_token", settings.words, kMaxDimension));
  KINGLET_RETURN_IF_ERROR(CheckSize("d_model", settings.width, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("d_embed", settings.embedding_width, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("n_head", settings.heads, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("d_head", settings.head_size, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(
      CheckSize("n_head x d_head", settings.heads * settings.head_size, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckSize("n_layer", settings.layers, kMaxLayers));
  KINGLET_RETURN_IF_ERROR(CheckSize("div_val", settings.divisor, kMaxExtent));
  if (settings.width % 2 != 0) {
    return RefuseCheckpoint("d_model", "an even number", std::to_string(settings.width));
  }
  const int64_t least = settings.same_length ? 1 : 0;
  const auto most = static_cast<int64_t>(kMaxExtent) - 1;
  if (settings.memory_length < least || settings.memory_length > most) {
    return RefuseCheckpoint(
        std::string("mem_len") + (settings.same_length ? " with same_length" : ""),
        std::to_string(least) + " to " + std::to_string(most),
        std::to_string(settings.memory_length));
  }
  if (!(std::isfinite(settings.epsilon) && settings.epsilon > 0)) {
    return RefuseCheckpoint("epsilon of the layer norms", "a number above 0",
                            NumberText(settings.epsilon));
  }
  return {};
}

class TransformerXlLoader {
 public:
  TransformerXlLoader(const TransformerXlNetwork& settings,
                      std::span<const CheckpointTensor> weights, NameReport* report)
      : settings_(settings),
        width_(static_cast<uint64_t>(settings.width)),
        heads_(static_cast<uint64_t>(settings.heads)),
        head_size_(static_cast<uint64_t>(settings.head_size)),
        network_(weights, report) {}

  Result<LoadedModel> Load() {
    KINGLET_ASSIGN_OR_RETURN(auto tables, TransformerXlTables::Make(settings_, network_));
    tables.Claim();
    const CheckpointTensor* frequencies =
        network_.Claim(settings_.prefix + "pos_emb.inv_freq", {width_ / 2});
    ClaimLayers();
    KINGLET_RETURN_IF_ERROR(network_.CheckNames("a " + settings_.family + " network"));
    KINGLET_RETURN_IF_ERROR(CheckSharedBiases());
    KINGLET_RETURN_IF_ERROR(tables.FindTies());
    network_.model.draft.description.vocabulary_size = static_cast<uint32_t>(settings_.words);
    AdaptiveSoftmax softmax = tables.DescribeSoftmax();
    std::vector<Block>& blocks = network_.model.draft.description.blocks;
    blocks.emplace_back(tables.DescribeEmbedding());
    blocks.emplace_back(DescribeDecoder(*frequencies));
    blocks.emplace_back(std::move(softmax));
    return network_.Finish();
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
    const std::string shared = settings_.prefix + name;
    const Shape shape = {heads_, head_size_};
    const bool own = network_.Has(attention + name) || settings_.own_query_biases.value_or(false);
    if (network_.Has(shared) || !own) {
      const CheckpointTensor* all = network_.Claim(shared, shape, !own);
      if (!own) return all;
    }
    return network_.Claim(attention + name, shape);
  }

  // Refuses layers with biases of their own if the configuration states that all layers share them.
  // REQUIRES: CheckNames found nothing.
  Status CheckSharedBiases() const {
    if (settings_.own_query_biases.value_or(true)) return {};
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
    for (int64_t i = 0; i < settings_.layers; ++i) {
      Layer layer{};
      layer.name = settings_.prefix + "layers." + std::to_string(i) + ".";
      const std::string attention = layer.name + "dec_attn.", inner = layer.name + "pos_ff.";
      const auto claim = [this](const std::string& name, const Shape& shape) {
        return network_.Claim(name, shape);
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
      const CheckpointTensor* const own = network_.Find(inner_bias);
      uint64_t stated = static_cast<uint64_t>(settings_.inner);
      if (stated == 0 && own != nullptr && own->is_zeros) {
        stated = network_.Dimension(inner + "CoreNet.0.weight", 0);
      }
      layer.inner_bias =
          stated > 0 ? claim(inner_bias, {stated}) : network_.ClaimUnshaped(inner_bias);
      const bool known = layer.inner_bias != nullptr && layer.inner_bias->shape.size() == 1;
      if (layer.inner_bias != nullptr && !known) {
        network_.NoteMisshaped(*layer.inner_bias, "a vector");
      }
      const uint64_t units = known ? layer.inner_bias->shape[0] : 0;
      layer.inner_weight = network_.Claim(inner + "CoreNet.0.weight", {units, width_});
      layer.outer_weight = network_.Claim(inner + "CoreNet.3.weight", {width_, units});
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
    decoder.window =
        static_cast<uint32_t>(settings_.memory_length + (settings_.same_length ? 0 : 1));
    decoder.start = settings_.zero_memory ? StreamStart::kZeros : StreamStart::kMasked;
    decoder.norm_order = settings_.pre_norm ? NormOrder::kPre : NormOrder::kPost;
    decoder.epsilon = settings_.epsilon;
    RelativeSinusoids positions{};
    positions.frequencies = network_.AddWhole(frequencies, Role::kKept);
    network_.MarkDerived(positions.frequencies);
    if (settings_.clamp_length > 0) {
      positions.clamp =
          static_cast<uint32_t>(std::min(settings_.clamp_length, int64_t{kMaxExtent}));
    }
    decoder.positions = positions;
    for (const Layer& layer : layers_) decoder.layers.push_back(DescribeLayer(layer));
    return decoder;
  }

  TransformerLayer DescribeLayer(const Layer& from) {
    const auto kept = [this](const CheckpointTensor* tensor) {
      return network_.AddWhole(*tensor, Role::kKept);
    };
    TransformerLayer layer{};
    layer.attention_norm_gain = kept(from.norm_gain);
    layer.attention_norm_bias = kept(from.norm_bias);
    layer.qkv_weight = network_.Add(from.qkv->name, from.qkv->shape, Role::kPrunedAlso, from.qkv,
                                    ByHead(heads_, {1, 1, 1}));
    if (settings_.zero_memory && settings_.pre_norm) {
      layer.start = network_.AddJoined(
          from.name + "dec_attn.zero_memory", {2 * heads_ * head_size_}, Role::kKept,
          {from.qkv, from.norm_bias}, ZeroMemory({heads_, head_size_, head_size_}));
      network_.MarkDerived(*layer.start);
    }
    layer.positions = network_.AddWhole(*from.positions, Role::kPrunedAlso);
    layer.content_bias = kept(from.content_bias);
    layer.position_bias = kept(from.position_bias);
    layer.out_weight = network_.AddWhole(*from.out, Role::kPrunedAlso);
    layer.inner_norm_gain = kept(from.inner_norm_gain);
    layer.inner_norm_bias = kept(from.inner_norm_bias);
    layer.inner_weight = network_.AddWhole(*from.inner_weight, Role::kPrunedAlso);
    layer.inner_bias = network_.AddWhole(*from.inner_bias, Role::kQuantised);
    layer.outer_weight = network_.AddWhole(*from.outer_weight, Role::kPrunedAlso);
    layer.outer_bias = network_.AddWhole(*from.outer_bias, Role::kQuantised);
    return layer;
  }

  const TransformerXlNetwork& settings_;
  const uint64_t width_, heads_, head_size_;
  Network network_;
  std::vector<Layer> layers_;
};

}  // namespace

Result<LoadedModel> LoadTransformerXlNetwork(const TransformerXlNetwork& settings,
                                             std::span<const CheckpointTensor> weights,
                                             NameReport* report) {
  KINGLET_RETURN_IF_ERROR(CheckNetworkSizes(settings));
  return TransformerXlLoader(settings, weights, report).Load();
}

}  // namespace kinglet
