// The family `icefall-transformer-lm`: a Transformer with relative positions.
// Framework: icefall, transformer_lm (TransformerLM). Files: epoch-N.pt and others with the
// state dict as "model" next to the optimiser's state; pretrained.pt. Peculiarities:
//   * linear layers are stored without their scales: weight and bias are multiplied by exp of
//     "weight_scale" and "bias_scale", and rounded to float32 once
//   * BasicNorm divides by the root mean square; its epsilon is stored as a logarithm; a layer has
//     one norm, at its end
//   * queries are divided by sqrt(key size) before the biases of content and position are added,
//     so the biases of a model file, which are added first, are sqrt(key size) times as large
//   * the table of relative sinusoids is float32, sines and cosines alternate
//   * the activation is x sigmoid(x - 1)
//   * start and end token as for `icefall-rnn-lm`
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/families.h"
#include "converters/families/icefall_rnn.h"
#include "converters/families/speech_stream.h"
#include "converters/families/token_list.h"
#include "converters/network/change.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"
#include "kernels/portable_functions.h"

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

class IcefallTransformerLoader {
 public:
  explicit IcefallTransformerLoader(const FamilyInput& input)
      : input_(input), network_(input.weights, input.report) {}

  Result<LoadedModel> Load() {
    if (IcefallTies(input_)) {
      network_.Share("input_embedding.weight", "output_linear.weight");
    } else {
      network_.MayShare("input_embedding.weight", "output_linear.weight", kToTieIcefall);
    }
    FindSizes();
    AdaptiveEmbedding embedding{"embedding", embedded_, 1, {}};
    const CheckpointTensor* table = network_.Claim("input_embedding.weight", {words_, embedded_});
    const CheckpointTensor* output = network_.Claim("output_linear.weight", {words_, width_});
    DenseLayers input_layers = DescribeInput();
    TransformerDecoder decoder = DescribeDecoder();
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = width_;
    softmax.head_size = words_;
    softmax.head_table =
        network_.Add("output_linear.weight", {words_, width_}, Role::kPrunedAlso, output);
    softmax.head_bias = network_.Add("output_linear.bias", {words_}, Role::kQuantised);
    if (table != nullptr && output != nullptr) {
      KINGLET_RETURN_IF_ERROR(
          network_.Tie(*output, *table, IcefallTies(input_) ? "tie_weights" : "").status());
    }
    embedding.bins.push_back(
        {0, words_,
         network_.Add("input_embedding.weight", {words_, embedded_}, Role::kPrunedAlso, table),
         std::nullopt});
    KINGLET_RETURN_IF_ERROR(network_.CheckNames("an icefall-transformer-lm network"));
    KINGLET_RETURN_IF_ERROR(CheckSizes());
    KINGLET_RETURN_IF_ERROR(ReadEpsilons(input_layers, decoder));
    network_.model.draft.description.blocks = {std::move(embedding), std::move(input_layers),
                                               std::move(decoder), std::move(softmax)};
    return network_.Finish();
  }

 private:
  void FindSizes() {
    network_.model.draft.description.vocabulary_size = words_ =
        network_.Dimension("input_embedding.weight", 0);
    embedded_ = network_.Dimension("input_embedding.weight", 1);
    width_ = network_.Dimension("encoder.embed.weight", 0);
    layers_ = CountLayers(input_.weights, "encoder.encoder.layers.", ".self_attn.in_proj.weight");
    heads_ = network_.Dimension("encoder.encoder.layers.0.self_attn.pos_bias_u", 0);
    key_size_ = network_.Dimension("encoder.encoder.layers.0.self_attn.pos_bias_u", 1);
    inner_ = network_.Dimension("encoder.encoder.layers.0.feed_forward.0.weight", 0);
  }

  Status CheckSizes() const {
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

  // A tensor times its scale, and changed further.
  TensorId AddScaled(const std::string& name, const Shape& shape, Role role, const Change& change) {
    return network_.AddJoined(name, shape, role,
                              {network_.Claim(name, shape), Scalar(name + "_scale")}, change);
  }
  TensorId Weight(const std::string& layer, uint64_t rows, uint64_t columns) {
    return AddScaled(layer + "weight", {rows, columns}, Role::kPrunedAlso, ScaledByLast());
  }
  TensorId Bias(const std::string& layer, uint64_t rows) {
    return AddScaled(layer + "bias", {rows}, Role::kQuantised, ScaledByLast());
  }
  const CheckpointTensor* Scalar(const std::string& name) { return network_.Claim(name, {}); }

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
    decoder.window = AttentionWindow(input_, network_.model.notes);
    decoder.start = StreamStart::kMasked;
    decoder.norm_order = NormOrder::kEnd;
    decoder.epsilon = 1;  // unused: there are no norms
    decoder.activation = Activation::kDoubleSwish;
    RelativeSinusoids positions{network_.AddComputed("encoder.encoder_pos.frequencies",
                                                     {width_ / 2}, MadeSinusoidFrequencies(width_)),
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
    const Change by_head = Then(ScaledByLast(), ByHead(heads_, {1, 1, 1}));
    layer.qkv_weight =
        AddScaled(attention + "in_proj.weight", {3 * d, d}, Role::kPrunedAlso, by_head);
    layer.qkv_bias = AddScaled(attention + "in_proj.bias", {3 * d}, Role::kQuantised, by_head);
    // The framework's table of positions has sines and cosines in turn.
    layer.positions = AddScaled(attention + "linear_pos.weight", {d, d}, Role::kPrunedAlso,
                                Then(ScaledByLast(), SinesFirst(d)));
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

  TensorId PositionBias(const std::string& name) {
    return AddScaled(name, {heads_, key_size_}, Role::kKept,
                     ScaledByLast(std::sqrt(static_cast<double>(key_size_))));
  }

  // The norms' epsilons, that of the input layer first. REQUIRES: CheckNames found nothing.
  Status ReadEpsilons(DenseLayers& input_layers, TransformerDecoder& decoder) {
    for (size_t i = 0; i < epsilons_.size(); ++i) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> logarithm, ReadFinite(*epsilons_[i]));
      const double epsilon = portable::Exp(double{logarithm.at(0)});
      if (i == 0) {
        input_layers.layers[0].epsilon = epsilon;
      } else {
        decoder.layers[i - 1].end_epsilon = epsilon;
      }
    }
    return {};
  }

  const FamilyInput& input_;
  Network network_;
  uint32_t words_ = 0, embedded_ = 0, width_ = 0, layers_ = 0, heads_ = 0, key_size_ = 0,
           inner_ = 0;
  std::vector<const CheckpointTensor*> epsilons_;
};

std::span<const OptionTable> IcefallTransformerOptions() {
  return {&kIcefallTransformerOptions, 1};
}

// All sizes follow from the tensors' shapes. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused
// and mis-shaped tensors, all in one message; those of SetSentenceTokens and FindTokenList.
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

}  // namespace

constexpr Family kIcefallTransformer = {
    .name = "icefall-transformer-lm",
    .marks = "encoder.encoder.layers.* input_embedding.weight|output_linear.weight",
    .load = LoadIcefallTransformer,
    .takes_memory_length = true,
    .options = IcefallTransformerOptions,
};

}  // namespace kinglet
