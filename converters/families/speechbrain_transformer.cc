// The family `speechbrain-transformer-lm`: a Transformer with stored positions.
// Framework: SpeechBrain, lobes.models.transformer.TransformerLM. Files and tokens as for
// `speechbrain-rnn-lm`.
// Peculiarities:
//   * the embedding is multiplied by sqrt(its width), and a linear layer may map it to the model's
//   * norms come last unless "normalize_before", and in both cases one more comes after the layers;
//     the softmax reads a linear layer and its norm; epsilon 1e-6 everywhere
//   * no token attends to tokens with id 0, so the start token must be another
//   * the file has 2,500 positions; the original fails beyond, here a stream starts again
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/families.h"
#include "converters/families/speech_stream.h"
#include "converters/families/speechbrain_config.h"
#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr double kSpeechbrainEpsilon = 1e-6;
constexpr uint32_t kSpeechbrainPadding = 0;

// Older versions have true for the positions that newer ones name.
constexpr std::array<FixedOption, 4> kFixedOfSpeechbrain = {
    {{"num_decoder_layers", "0"},
     {"positional_encoding", "'fixed_abs_sine'|True"},
     {"causal", "True"},
     {"attention_type", "'regularMHA'"}}};
constexpr OptionTable kSpeechbrainTransformerOptions = {
    "arguments of `TransformerLM`",
    "vocab d_model d_embedding nhead num_encoder_layers d_ffn max_length activation "
    "normalize_before",
    kFixedOfSpeechbrain,
    "dropout decoder_use_memory",
    {},
    "vocab d_model nhead num_encoder_layers d_ffn max_length activation normalize_before "
    "num_decoder_layers positional_encoding causal attention_type"};

// Options that do not follow from the shapes.
struct SpeechbrainOptions {
  uint32_t heads = 8;
  bool norm_first = false;
  Activation activation = Activation::kRelu;
};

Result<SpeechbrainOptions> ReadOptions(const SpeechbrainConfig& config) {
  SpeechbrainOptions options;
  KINGLET_ASSIGN_OR_RETURN(const int64_t heads, config.Integer("nhead", 8));
  if (heads < 1 || static_cast<uint64_t>(heads) > kMaxExtent) {
    return config.RefuseArgument("nhead", "1 to " + std::to_string(kMaxExtent),
                                 std::to_string(heads));
  }
  options.heads = static_cast<uint32_t>(heads);
  KINGLET_ASSIGN_OR_RETURN(options.norm_first, config.Boolean("normalize_before", false));
  KINGLET_ASSIGN_OR_RETURN(options.activation, config.ActivationOf("ReLU"));
  if (config.tokens.start == kSpeechbrainPadding) {
    return config.RefuseArgument("bos_index", "a token other than 0, which no token attends to",
                                 "0");
  }
  return options;
}

class SpeechbrainTransformerLoader {
 public:
  SpeechbrainTransformerLoader(const FamilyInput& input, const SpeechbrainConfig& config,
                               const SpeechbrainOptions& options)
      : input_(input), config_(config), options_(options), network_(input.weights, input.report) {}

  Result<LoadedModel> Load() {
    KINGLET_RETURN_IF_ERROR(FindSizes());
    const double scale = std::sqrt(static_cast<double>(embedded_));
    AdaptiveEmbedding embedding{"embedding", embedded_, scale, {}};
    embedding.bins.push_back({0, words_,
                              network_.Add("custom_src_module.emb.Embedding.weight",
                                           {words_, embedded_}, Role::kPrunedAlso),
                              std::nullopt});
    ModelDescription& description = network_.model.draft.description;
    description.vocabulary_size = words_;
    description.blocks.emplace_back(std::move(embedding));
    if (network_.Has("embedding_proj.w.weight")) {
      DenseLayer layer{};
      std::tie(layer.weight, layer.bias) =
          AddLinear(network_, "embedding_proj.w.", width_, embedded_);
      DenseLayers dense{"embedding_proj", DensePlace::kInput};
      dense.layers.push_back(layer);
      description.blocks.emplace_back(std::move(dense));
    }
    description.blocks.emplace_back(DescribeDecoder());
    description.blocks.emplace_back(DescribeOutput());
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = width_;
    softmax.head_size = words_;
    std::tie(softmax.head_table, softmax.head_bias) =
        AddLinear(network_, "output_proj.layers.2.w.", words_, width_);
    description.blocks.emplace_back(std::move(softmax));
    KINGLET_RETURN_IF_ERROR(
        network_.CheckNames("a speechbrain-transformer-lm network with these arguments"));
    KINGLET_RETURN_IF_ERROR(CheckSizes());
    return network_.Finish();
  }

 private:
  Status FindSizes() {
    words_ = network_.Dimension("custom_src_module.emb.Embedding.weight", 0);
    embedded_ = network_.Dimension("custom_src_module.emb.Embedding.weight", 1);
    width_ = network_.Dimension("output_proj.layers.0.w.weight", 0);
    inner_ = network_.Dimension("encoder.layers.0.pos_ffn.ffn.0.weight", 0);
    stored_positions_ = network_.Dimension("positional_encoding.pe", 1);
    layers_ = CountLayers(input_.weights, "encoder.layers.", ".self_att.att.in_proj_weight");
    KINGLET_ASSIGN_OR_RETURN(positions_, PositionsUsed(input_, stored_positions_));
    return {};
  }

  // Compares the sizes that the arguments state with the tensors'.
  Status CheckSizes() const {
    if (words_ == 0 || embedded_ == 0 || width_ == 0 || inner_ == 0 || stored_positions_ == 0) {
      return RefuseCheckpoint(
          "state dict",
          "custom_src_module.emb.Embedding.weight [words, e], output_proj.layers.0.w.weight [d, d],"
          " encoder.layers.0.pos_ffn.ffn.0.weight [n, d] and positional_encoding.pe [1, p, d]",
          std::to_string(words_) + " words, e " + std::to_string(embedded_) + ", d " +
              std::to_string(width_) + ", n " + std::to_string(inner_) + ", p " +
              std::to_string(stored_positions_));
    }
    if (width_ % options_.heads != 0) {
      return RefuseCheckpoint("nhead", "a divisor of the width " + std::to_string(width_),
                              std::to_string(options_.heads));
    }
    const std::pair<const char*, uint32_t> sizes[] = {
        {"vocab", words_}, {"d_model", width_},        {"num_encoder_layers", layers_},
        {"d_ffn", inner_}, {"d_embedding", embedded_}, {"max_length", stored_positions_}};
    for (const auto& [name, size] : sizes) {
      KINGLET_ASSIGN_OR_RETURN(const int64_t stated, config_.Integer(name, size));
      if (stated == size) continue;
      return config_.RefuseArgument(
          name, std::to_string(size) + ", as the checkpoint has",
          std::to_string(stated) + " (use this checkpoint's own hyperparams.yaml)");
    }
    return {};
  }

  TransformerDecoder DescribeDecoder() {
    TransformerDecoder decoder{};
    decoder.name = "decoder";
    decoder.width = width_;
    decoder.heads = options_.heads;
    decoder.key_size = decoder.value_size = width_ / options_.heads;
    decoder.window = positions_;
    decoder.start = StreamStart::kMasked;
    decoder.norm_order = options_.norm_first ? NormOrder::kPre : NormOrder::kPost;
    decoder.epsilon = kSpeechbrainEpsilon;
    decoder.activation = options_.activation;
    decoder.masked_token = kSpeechbrainPadding;
    const std::string table = "positional_encoding.pe";
    decoder.positions = AddStoredPositions(
        network_, table, network_.Claim(table, {1, stored_positions_, width_}), positions_, width_);
    for (uint32_t i = 0; i < layers_; ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i) + ".";
      const std::string attention = layer + "self_att.att.", feed = layer + "pos_ffn.ffn.";
      decoder.layers.push_back(AddTransformerLayer(network_,
                                                   {layer + "norm1.norm.",
                                                    attention + "in_proj_",
                                                    {attention + "in_proj_"},
                                                    attention + "out_proj.",
                                                    layer + "norm2.norm.",
                                                    feed + "0.",
                                                    feed + "3."},
                                                   {width_, options_.heads, inner_}));
    }
    std::tie(decoder.final_norm_gain, decoder.final_norm_bias) =
        AddNorm(network_, "encoder.norm.norm.", width_);
    return decoder;
  }

  DenseLayers DescribeOutput() {
    DenseLayer layer{};
    std::tie(layer.weight, layer.bias) =
        AddLinear(network_, "output_proj.layers.0.w.", width_, width_);
    layer.norm = DenseNorm::kLayer;
    std::tie(layer.norm_gain, layer.norm_bias) =
        AddNorm(network_, "output_proj.layers.1.norm.", width_);
    layer.epsilon = kSpeechbrainEpsilon;
    DenseLayers dense{"output_proj", DensePlace::kOutput};
    dense.layers.push_back(layer);
    return dense;
  }

  const FamilyInput& input_;
  const SpeechbrainConfig& config_;
  const SpeechbrainOptions options_;
  Network network_;
  uint32_t words_ = 0, embedded_ = 0, width_ = 0, inner_ = 0, layers_ = 0;
  uint32_t stored_positions_ = 0, positions_ = 0;
};

std::span<const OptionTable> SpeechbrainTransformerOptions() {
  return {&kSpeechbrainTransformerOptions, 1};
}

// Errors: those of ReadSpeechbrainConfig and SetSpeechbrainTokens; KINGLET_INVALID_CHECKPOINT for
// arguments that make another network, and for missing, unused and mis-shaped tensors, all in one
// message.
Result<LoadedModel> LoadSpeechbrainTransformer(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(
      const SpeechbrainConfig config,
      ReadSpeechbrainConfig(input,
                            "speechbrain.lobes.models.transformer.TransformerLM.TransformerLM",
                            kSpeechbrainTransformerOptions));
  KINGLET_ASSIGN_OR_RETURN(const SpeechbrainOptions options, ReadOptions(config));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model,
                           SpeechbrainTransformerLoader(input, config, options).Load());
  KINGLET_RETURN_IF_ERROR(SetSpeechbrainTokens(input, config, model));
  return model;
}

}  // namespace

constexpr Family kSpeechbrainTransformer = {
    .name = "speechbrain-transformer-lm",
    .marks = "custom_src_module.* output_proj.*",
    .load = LoadSpeechbrainTransformer,
    .takes_memory_length = true,
    .options = SpeechbrainTransformerOptions,
};

}  // namespace kinglet
