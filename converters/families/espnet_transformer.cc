// The family `espnet-transformer-lm`: a Transformer decoder with the norm first.
// Framework: ESPnet 2, lm: transformer (TransformerLM). Files: Nepoch.pth and
// valid.*.ave_Kbest.pth, with config.yaml next to them; also with the names of older versions
// ("input_layer." and "norm." of the encoder). Peculiarities:
//   * the embedding goes through a linear layer, layer normalisation (epsilon 1e-5) and ReLU; all
//     other norms have epsilon 1e-12
//   * without "pos_enc" the network has no positions; with sinusoids, the output of the ReLU is
//     first multiplied by sqrt(width): conversion multiplies gain and bias of the norm before the
//     ReLU, rounded to float32 once
//   * no token attends to tokens with id 0
//   * start and end token as for `espnet-rnn-lm`
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/espnet_config.h"
#include "converters/families/families.h"
#include "converters/families/speech_stream.h"
#include "converters/network/change.h"
#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr double kEspnetEpsilon = 1e-12;
constexpr double kEspnetInputEpsilon = 1e-5;
constexpr uint32_t kEspnetPadding = 0;

constexpr OptionTable kEspnetTransformerOptions = {
    "`lm_conf`", "pos_enc embed_unit att_unit head unit layer",
    {},          "dropout_rate positional_dropout_rate attention_dropout_rate",
    {},          "embed_unit att_unit head unit layer"};

struct EspnetSizes {
  uint32_t words = 0, embedded = 0, width = 0, heads = 0, inner = 0, layers = 0;
  bool sinusoids = false;
};

Result<EspnetSizes> ReadSizes(const EspnetConfig& config) {
  EspnetSizes sizes;
  struct Option {
    const char* name;
    int64_t otherwise;
    uint32_t EspnetSizes::*size;
    uint64_t most = kMaxExtent;
  };
  for (const Option& option :
       {Option{"embed_unit", 128, &EspnetSizes::embedded},
        Option{"att_unit", 256, &EspnetSizes::width}, Option{"head", 2, &EspnetSizes::heads},
        Option{"unit", 1024, &EspnetSizes::inner},
        Option{"layer", 4, &EspnetSizes::layers, kMaxLayers}}) {
    KINGLET_ASSIGN_OR_RETURN(const int64_t value, config.Integer(option.name, option.otherwise));
    if (value < 1 || static_cast<uint64_t>(value) > option.most) {
      return config.RefuseOption(option.name, "1 to " + std::to_string(option.most),
                                 std::to_string(value));
    }
    sizes.*option.size = static_cast<uint32_t>(value);
  }
  if (sizes.width % sizes.heads != 0) {
    return config.RefuseOption("head", "a divisor of att_unit " + std::to_string(sizes.width),
                               std::to_string(sizes.heads));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string positions, config.Text("pos_enc", ""));
  sizes.sinusoids = positions == "sinusoidal";
  if (!positions.empty() && !sizes.sinusoids) {
    return config.RefuseOption("pos_enc", "null or sinusoidal", QuotedName(positions));
  }
  if (sizes.sinusoids && sizes.width % 2 != 0) {
    return config.RefuseOption("att_unit", "an even number with sinusoidal positions",
                               std::to_string(sizes.width));
  }
  sizes.words = static_cast<uint32_t>(config.tokens.size());
  return sizes;
}

// Newer and older versions name a module differently.
DenseLayers DescribeInput(const EspnetSizes& sizes, Network& network) {
  const std::string norm =
      FirstModule(network, {"lm.encoder.embed.1.", "lm.encoder.input_layer.1."});
  DenseLayer layer{};
  std::tie(layer.weight, layer.bias) =
      AddLinear(network, FirstModule(network, {"lm.encoder.embed.0.", "lm.encoder.input_layer.0."}),
                sizes.width, sizes.embedded);
  layer.norm = DenseNorm::kLayer;
  if (sizes.sinusoids) {
    const Change scaled = Scaled(std::sqrt(static_cast<double>(sizes.width)));
    layer.norm_gain = network.AddChanged(norm + "weight", {sizes.width}, Role::kKept, scaled);
    layer.norm_bias = network.AddChanged(norm + "bias", {sizes.width}, Role::kKept, scaled);
  } else {
    std::tie(layer.norm_gain, layer.norm_bias) = AddNorm(network, norm, sizes.width);
  }
  layer.epsilon = kEspnetInputEpsilon;
  layer.activation = Activation::kRelu;
  DenseLayers dense{"encoder.embed", DensePlace::kInput};
  dense.layers.push_back(layer);
  return dense;
}

TransformerDecoder DescribeDecoder(const EspnetSizes& sizes, uint32_t window, Network& network) {
  TransformerDecoder decoder{};
  decoder.name = "decoder";
  decoder.width = sizes.width;
  decoder.heads = sizes.heads;
  decoder.key_size = decoder.value_size = sizes.width / sizes.heads;
  decoder.window = window;
  decoder.start = StreamStart::kMasked;
  decoder.norm_order = NormOrder::kPre;
  decoder.epsilon = kEspnetEpsilon;
  decoder.masked_token = kEspnetPadding;
  for (uint32_t i = 0; i < sizes.layers; ++i) {
    const std::string layer = "lm.encoder.encoders." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.", feed = layer + "feed_forward.";
    decoder.layers.push_back(AddTransformerLayer(
        network,
        {layer + "norm1.",
         attention + "qkv.",
         {attention + "linear_q.", attention + "linear_k.", attention + "linear_v."},
         attention + "linear_out.",
         layer + "norm2.",
         feed + "w_1.",
         feed + "w_2."},
        {sizes.width, sizes.heads, sizes.inner}));
  }
  std::tie(decoder.final_norm_gain, decoder.final_norm_bias) = AddNorm(
      network, FirstModule(network, {"lm.encoder.after_norm.", "lm.encoder.norm."}), sizes.width);
  return decoder;
}

Positions DescribePositions(const EspnetSizes& sizes, uint32_t window, Network& network) {
  if (!sizes.sinusoids) return NoPositions{};
  // A window that no model may have is refused when the model is written.
  const uint32_t rows = window <= kMaxExtent ? window : 1;
  return PositionTable{network.AddComputed("encoder.positions", {rows, sizes.width},
                                           MadeSinusoids(rows, sizes.width))};
}

Result<LoadedModel> DescribeEspnet(const FamilyInput& input, const EspnetSizes& sizes) {
  Network network(input.weights, input.report);
  const uint32_t window = AttentionWindow(input, network.model.notes);
  AdaptiveEmbedding embedding{"embedding", sizes.embedded, 1, {}};
  embedding.bins.push_back(
      {0, sizes.words,
       network.Add("lm.embed.weight", {sizes.words, sizes.embedded}, Role::kPrunedAlso),
       std::nullopt});
  DenseLayers input_layers = DescribeInput(sizes, network);
  TransformerDecoder decoder = DescribeDecoder(sizes, window, network);
  AdaptiveSoftmax softmax{};
  softmax.name = "softmax";
  softmax.width = sizes.width;
  softmax.head_size = sizes.words;
  std::tie(softmax.head_table, softmax.head_bias) =
      AddLinear(network, "lm.decoder.", sizes.words, sizes.width);
  // Tables of positions that some versions store and no version reads.
  for (const CheckpointTensor& tensor : input.weights) {
    if (tensor.name.ends_with(".pe")) network.ClaimUnshaped(tensor.name, false);
  }
  decoder.positions = DescribePositions(sizes, window, network);
  ModelDescription& description = network.model.draft.description;
  description.vocabulary_size = sizes.words;
  description.blocks = {std::move(embedding), std::move(input_layers), std::move(decoder),
                        std::move(softmax)};
  return network.Build("an espnet-transformer-lm network with these options");
}

std::span<const OptionTable> EspnetTransformerOptions() {
  static const std::array kBoth = {kEspnetTransformerOptions, EspnetTaskOptions()};
  return kBoth;
}

// Errors: those of ReadEspnetConfig and SetEspnetTokens; KINGLET_INVALID_CHECKPOINT for options
// that make another network, and for missing, unused and mis-shaped tensors, all in one message.
Result<LoadedModel> LoadEspnetTransformer(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const EspnetConfig config,
                           ReadEspnetConfig(input, "transformer", kEspnetTransformerOptions));
  KINGLET_ASSIGN_OR_RETURN(const EspnetSizes sizes, ReadSizes(config));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, DescribeEspnet(input, sizes));
  KINGLET_RETURN_IF_ERROR(SetEspnetTokens(config, model));
  return model;
}

}  // namespace

constexpr Family kEspnetTransformer = {
    .name = "espnet-transformer-lm",
    .marks = "lm.embed.* lm.encoder.encoders.*",
    .load = LoadEspnetTransformer,
    .takes_memory_length = true,
    .options = EspnetTransformerOptions,
};

}  // namespace kinglet
