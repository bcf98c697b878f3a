#include "converters/families/fairseq.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/families/draft_builder.h"
#include "converters/families/fairseq_tables.h"
#include "converters/families/transformer_values.h"
#include "converters/matrix_order.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr uint32_t kPadding = 1;
constexpr uint32_t kEndOfSentence = 2;
constexpr double kFairseqEpsilon = 1e-5;  // PyTorch's default, of all norms

class FairseqLoader {
 public:
  FairseqLoader(const FairseqConfig& config, std::span<const CheckpointTensor> weights,
                const FairseqDictionary& dictionary)
      : config_(config), builder_(weights), tables_(config, dictionary, builder_) {}

  Result<LoadedModel> Load() {
    KINGLET_RETURN_IF_ERROR(FindVersion());
    KINGLET_ASSIGN_OR_RETURN(AdaptiveEmbedding embedding, tables_.DescribeEmbedding());
    TransformerDecoder decoder = DescribeDecoder();
    KINGLET_ASSIGN_OR_RETURN(AdaptiveSoftmax softmax, tables_.DescribeSoftmax());
    ClaimLeftovers();
    KINGLET_RETURN_IF_ERROR(
        builder_.CheckNames("a fairseq language model with these "
                            "hyper-parameters"));
    KINGLET_RETURN_IF_ERROR(tables_.CheckTies());
    ModelDescription& description = builder_.model.draft.description;
    description.vocabulary_size = tables_.words();
    description.start_token = description.end_token = kEndOfSentence;
    description.blocks.emplace_back(std::move(embedding));
    description.blocks.emplace_back(std::move(decoder));
    description.blocks.emplace_back(std::move(softmax));
    builder_.DeferValues();
    return std::move(builder_.model);
  }

 private:
  // Decoders up to version 2, and those without a version, have no final norm.
  Status FindVersion() {
    const CheckpointTensor* version = builder_.ClaimUnshaped("decoder.version", false);
    final_norm_ = false;
    if (version == nullptr || CountEntries(version->shape) != 1) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> value, ReadFinite(*version));
    final_norm_ = config_.final_norm && value[0] > 2;
    return {};
  }

  // Tensors that the network does not use; some of them contain uninitialised memory.
  void ClaimLeftovers() {
    for (const char* name :
         {"embed_tokens._float_tensor", "embed_positions._float_tensor", "embed_positions.weights",
          "adaptive_softmax.head._float_tensor", "adaptive_softmax.version"}) {
      builder_.ClaimUnshaped(std::string("decoder.") + name, false);
    }
  }

  TransformerDecoder DescribeDecoder() {
    TransformerDecoder decoder{};
    decoder.name = "decoder";
    decoder.width = config_.width;
    decoder.heads = config_.heads;
    decoder.key_size = decoder.value_size = config_.width / config_.heads;
    decoder.window = config_.positions;
    decoder.start = StreamStart::kMasked;
    decoder.norm_order = config_.norm_first ? NormOrder::kPre : NormOrder::kPost;
    decoder.activation = config_.activation;
    decoder.epsilon = kFairseqEpsilon;
    decoder.positions = DescribePositions();
    for (uint32_t i = 0; i < config_.layers; ++i) {
      decoder.layers.push_back(DescribeLayer("decoder.layers." + std::to_string(i) + "."));
    }
    if (final_norm_) {
      decoder.final_norm_gain = Kept("decoder.layer_norm.weight", {config_.width});
      decoder.final_norm_bias = Kept("decoder.layer_norm.bias", {config_.width});
    }
    return decoder;
  }

  Positions DescribePositions() {
    if (!config_.has_positions) return NoPositions{};
    const uint64_t first = kPadding + 1;
    if (!config_.learned_positions) {
      return AbsoluteSinusoids{builder_.AddComputed("decoder.embed_positions.frequencies",
                                                    FairseqFrequencies(config_.width)),
                               static_cast<uint32_t>(first)};
    }
    const std::string name = "decoder.embed_positions.weight";
    const CheckpointTensor* table =
        builder_.Claim(name, {config_.positions + first, uint64_t{config_.width}});
    return PositionTable{
        builder_.Add(name, {config_.positions, config_.width}, Role::kKept, table, {first, 0})};
  }

  TensorId Kept(const std::string& name, const Shape& shape) {
    return builder_.Add(name, shape, Role::kKept);
  }

  TransformerLayer DescribeLayer(const std::string& prefix) {
    const uint64_t d = config_.width, inner = config_.inner;
    // `names` are those of newer and older files; the first one that the file has counts.
    const auto norm = [&](std::initializer_list<const char*> names) {
      const auto* has = std::find_if(names.begin(), names.end(), [&](const char* name) {
        return builder_.Has(prefix + name + ".weight");
      });
      const std::string name = prefix + (has != names.end() ? *has : *names.begin());
      // Braces fix the order, and with it the file.
      return std::pair<TensorId, TensorId>{Kept(name + ".weight", {d}), Kept(name + ".bias", {d})};
    };
    TransformerLayer layer{};
    std::tie(layer.attention_norm_gain, layer.attention_norm_bias) =
        norm({"self_attn_layer_norm", "layer_norms.0"});
    const std::string attention = prefix + "self_attn.";
    layer.qkv_weight = DescribeProjections(attention, "weight", {d, d}, Role::kPrunedAlso);
    layer.qkv_bias = DescribeProjections(attention, "bias", {d}, Role::kQuantised);
    layer.out_weight = builder_.Add(attention + "out_proj.weight", {d, d}, Role::kPrunedAlso);
    layer.out_bias = builder_.Add(attention + "out_proj.bias", {d}, Role::kQuantised);
    // Without attention to an encoder, the second norm is the last.
    std::tie(layer.inner_norm_gain, layer.inner_norm_bias) =
        norm({"final_layer_norm", "layer_norms.1", "layer_norms.2"});
    layer.inner_weight = builder_.Add(prefix + "fc1.weight", {inner, d}, Role::kPrunedAlso);
    layer.inner_bias = builder_.Add(prefix + "fc1.bias", {inner}, Role::kQuantised);
    layer.outer_weight = builder_.Add(prefix + "fc2.weight", {d, inner}, Role::kPrunedAlso);
    layer.outer_bias = builder_.Add(prefix + "fc2.bias", {d}, Role::kQuantised);
    return layer;
  }

  // The weight or the bias (`part`) of queries, keys and values; `shape` is that of one of the
  // three.
  TensorId DescribeProjections(const std::string& attention, const std::string& part,
                               const Shape& shape, Role role) {
    Shape all = shape;
    all[0] *= 3;
    const std::string name = attention + "qkv." + part;
    const auto by_head = [heads = config_.heads](const std::vector<float>& values) {
      return RowsByHead(values, 3, heads);
    };
    const std::string joined = attention + "in_proj_" + part;
    if (builder_.Has(joined)) {
      return builder_.AddMade(name, all, role, builder_.Claim(joined, all), by_head);
    }
    std::vector<const CheckpointTensor*> tensors;
    for (const char* projection : {"q_proj.", "k_proj.", "v_proj."}) {
      tensors.push_back(builder_.Claim(attention + projection + part, shape));
    }
    return builder_.AddMade(name, all, role, tensors, by_head);
  }

  const FairseqConfig& config_;
  DraftBuilder builder_;
  FairseqTables tables_;
  bool final_norm_ = false;
};

}  // namespace

bool LooksLikeFairseq(std::span<const CheckpointTensor> weights) {
  return HasTensorUnder(weights, "decoder.layers.0.self_attn.") &&
         HasTensorUnder(weights, "decoder.embed_tokens.") && !HasTensorUnder(weights, "encoder.");
}

Result<LoadedModel> FairseqDraft(const FairseqConfig& config,
                                 std::span<const CheckpointTensor> weights,
                                 const FairseqDictionary& dictionary) {
  return FairseqLoader(config, weights, dictionary).Load();
}

Result<LoadedModel> LoadFairseq(const FamilyInput& input) {
  if (input.root == nullptr) {
    return Status::Refusal(
        KINGLET_INVALID_CHECKPOINT, "checkpoint", input.checkpoint,
        "a file of torch.save with fairseq's 'args' or 'cfg'",
        "tensors without hyper-parameters (convert the file that fairseq saved)");
  }
  KINGLET_ASSIGN_OR_RETURN(const FairseqConfig config,
                           ReadFairseqConfig(*input.root, input.ignored));
  FairseqDictionary dictionary;
  const auto made =
      std::find_if(input.weights.begin(), input.weights.end(), [](const CheckpointTensor& tensor) {
        return tensor.name == kFairseqInput && !tensor.made.empty();
      });
  if (config.characters && made == input.weights.end()) {
    KINGLET_ASSIGN_OR_RETURN(dictionary, ReadFairseqDictionary(input));
  }
  return FairseqDraft(config, input.weights, dictionary);
}

}  // namespace kinglet
