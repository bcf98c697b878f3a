#include "converters/families/icefall_transformer.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/draft_builder.h"
#include "converters/families/icefall_rnn.h"
#include "converters/families/speech_stream.h"
#include "converters/families/token_list.h"
#include "converters/matrix_order.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr OptionTable kIcefallTransformerOptions = {
    "the checkpoint's entries",
    "model sos_id eos_id vocab_size embedding_dim encoder_dim dim_feedforward nhead num_layers "
    "tie_weights",
    {},
    kIcefallIgnored,
    {},
    "sos_id eos_id vocab_size embedding_dim encoder_dim dim_feedforward nhead num_layers "
    "tie_weights"};

// All values but the last, times exp of the last, which is the logarithm of their scale.
std::vector<float> Rescaled(std::vector<float> values, double factor = 1) {
  const double scale = std::exp(double{values.back()});
  values.pop_back();
  return ScaledBy(factor * scale, std::move(values));
}

// Reorders columns: the framework's table alternates sines and cosines; the result has all sines,
// then all cosines.
std::vector<float> SinesFirst(const std::vector<float>& values, uint64_t columns) {
  std::vector<float> ordered(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t column = i % columns;
    ordered[i - column + column / 2 + (column % 2) * (columns / 2)] = values[i];
  }
  return ordered;
}

class IcefallTransformerLoader {
 public:
  explicit IcefallTransformerLoader(const FamilyInput& input)
      : input_(input), builder_(input.weights) {}

  Result<LoadedModel> Load() {
    KINGLET_RETURN_IF_ERROR(FindSizes());
    std::vector<Block>& blocks = builder_.model.draft.description.blocks;
    AdaptiveEmbedding embedding{"embedding", embedded_, 1, {}};
    const CheckpointTensor* table = builder_.Claim("input_embedding.weight", {words_, embedded_});
    const CheckpointTensor* output = builder_.Claim("output_linear.weight", {words_, width_});
    DenseLayers input_layers = DescribeInput();
    TransformerDecoder decoder = DescribeDecoder();
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = width_;
    softmax.head_size = words_;
    softmax.head_table =
        builder_.Add("output_linear.weight", {words_, width_}, Role::kPrunedAlso, output);
    softmax.head_bias = builder_.Add("output_linear.bias", {words_}, Role::kQuantised);
    TensorId rows = *softmax.head_table;
    const bool both = table != nullptr && output != nullptr;
    const Result<bool> tied = both ? SameParameter(*table, *output) : Result<bool>(false);
    if (!tied.ok()) return tied.status();
    if (both && IcefallTies(input_)) {
      KINGLET_RETURN_IF_ERROR(CheckStatedTie("tie_weights", *table, *output, *tied));
    }
    if (!*tied) {
      rows = builder_.Add("input_embedding.weight", {words_, embedded_}, Role::kPrunedAlso, table);
    }
    KINGLET_RETURN_IF_ERROR(builder_.CheckNames("an icefall-transformer-lm network"));
    KINGLET_RETURN_IF_ERROR(ReadEpsilons(input_layers, decoder));
    embedding.bins.push_back({0, words_, rows, std::nullopt});
    blocks.emplace_back(std::move(embedding));
    blocks.emplace_back(std::move(input_layers));
    blocks.emplace_back(std::move(decoder));
    blocks.emplace_back(std::move(softmax));
    builder_.DeferValues();
    return std::move(builder_.model);
  }

 private:
  // A dimension of a tensor, which Claim checks later; 0 if the tensor lacks it.
  uint32_t Dimension(const std::string& name, size_t axis) const {
    const CheckpointTensor* tensor = builder_.Find(name);
    const bool has =
        tensor != nullptr && axis < tensor->shape.size() && tensor->shape[axis] <= kMaxDimension;
    return has ? static_cast<uint32_t>(tensor->shape[axis]) : 0;
  }

  Status FindSizes() {
    builder_.model.draft.description.vocabulary_size = words_ =
        Dimension("input_embedding.weight", 0);
    embedded_ = Dimension("input_embedding.weight", 1);
    width_ = Dimension("encoder.embed.weight", 0);
    layers_ = CountLayers(input_.weights, "encoder.encoder.layers.", ".self_attn.in_proj.weight");
    heads_ = Dimension("encoder.encoder.layers.0.self_attn.pos_bias_u", 0);
    key_size_ = Dimension("encoder.encoder.layers.0.self_attn.pos_bias_u", 1);
    inner_ = Dimension("encoder.encoder.layers.0.feed_forward.0.weight", 0);
    KINGLET_RETURN_IF_ERROR(CheckStated());
    if (words_ > 0 && embedded_ > 0 && width_ > 0 && width_ % 2 == 0 && inner_ > 0 &&
        uint64_t{heads_} * key_size_ == width_) {
      return {};
    }
    return RefuseCheckpoint(
        "state dict",
        "input_embedding.weight [words, e], encoder.embed.weight [d, e] with an even d, "
        "pos_bias_u [heads, d / heads] and feed_forward.0.weight [n, d] of layer 0",
        std::to_string(words_) + " words, e " + std::to_string(embedded_) + ", d " +
            std::to_string(width_) + ", " + std::to_string(heads_) + " heads of " +
            std::to_string(key_size_) + ", n " + std::to_string(inner_));
  }

  // Compares the sizes that the checkpoint states with its tensors'.
  Status CheckStated() const {
    const std::pair<const char*, uint32_t> sizes[] = {
        {"vocab_size", words_},  {"embedding_dim", embedded_},
        {"encoder_dim", width_}, {"dim_feedforward", inner_},
        {"nhead", heads_},       {"num_layers", layers_}};
    for (const auto& [name, size] : sizes) {
      const int64_t stated = IcefallInteger(input_, name).value_or(size);
      if (stated == size) continue;
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, input_.checkpoint, name,
          std::to_string(size) + ", as the tensors have",
          std::to_string(stated) + " (save the file again with the options of its network)");
    }
    return {};
  }

  // The weight or bias of a linear layer, times its scale.
  TensorId Scaled(const std::string& name, const Shape& shape, Role role) {
    return builder_.AddMade(name, shape, role,
                            {builder_.Claim(name, shape), Scalar(name + "_scale")},
                            [](std::vector<float> values) -> Result<std::vector<float>> {
                              return Rescaled(std::move(values));
                            });
  }
  TensorId Weight(const std::string& layer, uint64_t rows, uint64_t columns) {
    return Scaled(layer + "weight", {rows, columns}, Role::kPrunedAlso);
  }
  TensorId Bias(const std::string& layer, uint64_t rows) {
    return Scaled(layer + "bias", {rows}, Role::kQuantised);
  }
  const CheckpointTensor* Scalar(const std::string& name) { return builder_.Claim(name, {}); }

  DenseLayers DescribeInput() {
    DenseLayers dense{"encoder.embed", DensePlace::kInput};
    DenseLayer layer{Weight("encoder.embed.", width_, embedded_), Bias("encoder.embed.", width_),
                     DenseNorm::kRootMeanSquare};
    epsilons_.push_back(Scalar("encoder.norm_before.eps"));
    dense.layers.push_back(layer);
    return dense;
  }

  TransformerDecoder DescribeDecoder() {
    TransformerDecoder decoder{};
    decoder.name = "decoder";
    decoder.width = width_;
    decoder.heads = heads_;
    decoder.key_size = decoder.value_size = key_size_;
    decoder.window = AttentionWindow(input_, builder_.model.notes);
    decoder.start = StreamStart::kMasked;
    decoder.norm_order = NormOrder::kEnd;
    decoder.epsilon = 1;  // unused: there are no norms
    decoder.activation = Activation::kDoubleSwish;
    RelativeSinusoids positions{
        builder_.AddComputed("encoder.encoder_pos.frequencies", SinusoidFrequencies(width_)),
        std::nullopt};
    positions.rounded = true;
    decoder.positions = positions;
    for (uint32_t i = 0; i < layers_; ++i) {
      decoder.layers.push_back(DescribeLayer("encoder.encoder.layers." + std::to_string(i) + "."));
    }
    return decoder;
  }

  TransformerLayer DescribeLayer(const std::string& prefix) {
    const uint64_t d = width_;
    const std::string attention = prefix + "self_attn.";
    TransformerLayer layer{};
    layer.qkv_weight = ByHead(attention + "in_proj.weight", {3 * d, d}, Role::kPrunedAlso);
    layer.qkv_bias = ByHead(attention + "in_proj.bias", {3 * d}, Role::kQuantised);
    layer.positions =
        builder_.AddMade(attention + "linear_pos.weight", {d, d}, Role::kPrunedAlso,
                         {builder_.Claim(attention + "linear_pos.weight", {d, d}),
                          Scalar(attention + "linear_pos.weight_scale")},
                         [d](std::vector<float> values) -> Result<std::vector<float>> {
                           return SinesFirst(Rescaled(std::move(values)), d);
                         });
    layer.content_bias = PositionBias(attention + "pos_bias_u");
    layer.position_bias = PositionBias(attention + "pos_bias_v");
    layer.out_weight = Weight(attention + "out_proj.", d, d);
    layer.out_bias = Bias(attention + "out_proj.", d);
    layer.inner_weight = Weight(prefix + "feed_forward.0.", inner_, d);
    layer.inner_bias = Bias(prefix + "feed_forward.0.", inner_);
    layer.outer_weight = Weight(prefix + "feed_forward.4.", d, inner_);
    layer.outer_bias = Bias(prefix + "feed_forward.4.", d);
    epsilons_.push_back(Scalar(prefix + "norm_final.eps"));
    return layer;
  }

  TensorId ByHead(const std::string& name, const Shape& shape, Role role) {
    return builder_.AddMade(
        name, shape, role, {builder_.Claim(name, shape), Scalar(name + "_scale")},
        [heads = heads_](std::vector<float> values) -> Result<std::vector<float>> {
          return RowsByHead(Rescaled(std::move(values)), 3, heads);
        });
  }

  TensorId PositionBias(const std::string& name) {
    const Shape shape = {heads_, key_size_};
    const double factor = std::sqrt(static_cast<double>(key_size_));
    return builder_.AddMade(name, shape, Role::kKept,
                            {builder_.Claim(name, shape), Scalar(name + "_scale")},
                            [factor](std::vector<float> values) -> Result<std::vector<float>> {
                              return Rescaled(std::move(values), factor);
                            });
  }

  // The norms' epsilons, that of the input layer first. REQUIRES: CheckNames found nothing.
  Status ReadEpsilons(DenseLayers& input_layers, TransformerDecoder& decoder) {
    for (size_t i = 0; i < epsilons_.size(); ++i) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> logarithm, ReadFinite(*epsilons_[i]));
      const double epsilon = std::exp(double{logarithm.at(0)});
      if (i == 0) {
        input_layers.layers[0].epsilon = epsilon;
      } else {
        decoder.layers[i - 1].end_epsilon = epsilon;
      }
    }
    return {};
  }

  const FamilyInput& input_;
  DraftBuilder builder_;
  uint32_t words_ = 0, embedded_ = 0, width_ = 0, layers_ = 0, heads_ = 0, key_size_ = 0,
           inner_ = 0;
  std::vector<const CheckpointTensor*> epsilons_;
};

}  // namespace

std::span<const OptionTable> IcefallTransformerOptions() {
  return {&kIcefallTransformerOptions, 1};
}

bool LooksLikeIcefallTransformer(std::span<const CheckpointTensor> weights) {
  return HasTensorUnder(weights, "encoder.encoder.layers.") &&
         HasTensor(weights, "input_embedding.weight");
}

Result<LoadedModel> LoadIcefallTransformer(const FamilyInput& input) {
  KINGLET_RETURN_IF_ERROR(CheckIcefallOptions(kIcefallTransformerOptions, input));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, IcefallTransformerLoader(input).Load());
  ModelDescription& description = model.draft.description;
  KINGLET_RETURN_IF_ERROR(SetSentenceTokens(IcefallSentenceTokens(input),
                                            input.checkpoint + ", sos_id and eos_id", description));
  KINGLET_ASSIGN_OR_RETURN(model.draft.vocabulary,
                           FindTokenList(input.checkpoint, description.vocabulary_size));
  return model;
}

}  // namespace kinglet
