#include "converters/families/espnet_transformer.h"

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/quoted.h"
#include "converters/families/draft_builder.h"
#include "converters/families/espnet_config.h"
#include "converters/families/speech_stream.h"
#include "converters/matrix_order.h"
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

class EspnetTransformerLoader {
 public:
  EspnetTransformerLoader(const FamilyInput& input, const EspnetSizes& sizes)
      : input_(input), sizes_(sizes), builder_(input.weights) {}

  Result<LoadedModel> Load() {
    const uint32_t d = sizes_.width;
    ModelDescription& description = builder_.model.draft.description;
    description.vocabulary_size = sizes_.words;
    AdaptiveEmbedding embedding{"embedding", sizes_.embedded, 1, {}};
    embedding.bins.push_back(
        {0, sizes_.words,
         builder_.Add("lm.embed.weight", {sizes_.words, sizes_.embedded}, Role::kPrunedAlso),
         std::nullopt});
    DenseLayers input_layers = DescribeInput();
    TransformerDecoder decoder = DescribeDecoder();
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = d;
    softmax.head_size = sizes_.words;
    softmax.head_table = builder_.Add("lm.decoder.weight", {sizes_.words, d}, Role::kPrunedAlso);
    softmax.head_bias = builder_.Add("lm.decoder.bias", {sizes_.words}, Role::kQuantised);
    ClaimPositions();
    KINGLET_RETURN_IF_ERROR(
        builder_.CheckNames("an espnet-transformer-lm network with these options"));
    decoder.positions = DescribePositions(decoder.window);
    description.blocks.emplace_back(std::move(embedding));
    description.blocks.emplace_back(std::move(input_layers));
    description.blocks.emplace_back(std::move(decoder));
    description.blocks.emplace_back(std::move(softmax));
    builder_.DeferValues();
    return std::move(builder_.model);
  }

 private:
  // Tables of positions that some versions store and no version reads.
  void ClaimPositions() {
    for (const CheckpointTensor& tensor : input_.weights) {
      if (tensor.name.ends_with(".pe")) builder_.ClaimUnshaped(tensor.name, false);
    }
  }

  TensorId Weight(const std::string& layer, uint64_t rows, uint64_t columns) {
    return builder_.Add(layer + "weight", {rows, columns}, Role::kPrunedAlso);
  }
  TensorId Bias(const std::string& layer, uint64_t rows) {
    return builder_.Add(layer + "bias", {rows}, Role::kQuantised);
  }
  TensorId Kept(const std::string& name) { return builder_.Add(name, {sizes_.width}, Role::kKept); }
  // The first of the prefixes, of newer and older versions, that the file has.
  std::string PrefixOf(const std::string& newer, const std::string& older) const {
    return builder_.Has(older + "weight") && !builder_.Has(newer + "weight") ? older : newer;
  }

  DenseLayers DescribeInput() {
    const std::string linear = PrefixOf("lm.encoder.embed.0.", "lm.encoder.input_layer.0.");
    const std::string norm = PrefixOf("lm.encoder.embed.1.", "lm.encoder.input_layer.1.");
    DenseLayers dense{"encoder.embed", DensePlace::kInput};
    DenseLayer layer{Weight(linear, sizes_.width, sizes_.embedded), Bias(linear, sizes_.width),
                     DenseNorm::kLayer};
    layer.norm_gain = InputNorm(norm + "weight");
    layer.norm_bias = InputNorm(norm + "bias");
    layer.epsilon = kEspnetInputEpsilon;
    layer.activation = Activation::kRelu;
    dense.layers.push_back(layer);
    return dense;
  }
  TensorId InputNorm(const std::string& name) {
    if (!sizes_.sinusoids) return Kept(name);
    const Shape shape = {sizes_.width};
    const double factor = std::sqrt(static_cast<double>(sizes_.width));
    return builder_.AddMade(name, shape, Role::kKept, builder_.Claim(name, shape),
                            [factor](std::vector<float> values) -> Result<std::vector<float>> {
                              return ScaledBy(factor, std::move(values));
                            });
  }

  TransformerDecoder DescribeDecoder() {
    TransformerDecoder decoder{};
    decoder.name = "decoder";
    decoder.width = sizes_.width;
    decoder.heads = sizes_.heads;
    decoder.key_size = decoder.value_size = sizes_.width / sizes_.heads;
    decoder.window = AttentionWindow(input_, builder_.model.notes);
    decoder.start = StreamStart::kMasked;
    decoder.norm_order = NormOrder::kPre;
    decoder.epsilon = kEspnetEpsilon;
    decoder.masked_token = kEspnetPadding;
    for (uint32_t i = 0; i < sizes_.layers; ++i) {
      decoder.layers.push_back(DescribeLayer("lm.encoder.encoders." + std::to_string(i) + "."));
    }
    const std::string norm = PrefixOf("lm.encoder.after_norm.", "lm.encoder.norm.");
    decoder.final_norm_gain = Kept(norm + "weight");
    decoder.final_norm_bias = Kept(norm + "bias");
    return decoder;
  }

  Positions DescribePositions(uint32_t window) {
    if (!sizes_.sinusoids) return NoPositions{};
    // A window that no model may have is refused when the model is written.
    const uint32_t rows = window <= kMaxExtent ? window : 1;
    return PositionTable{builder_.AddComputed("encoder.positions", {rows, sizes_.width},
                                              SinusoidTable(rows, sizes_.width))};
  }

  TransformerLayer DescribeLayer(const std::string& prefix) {
    const uint64_t d = sizes_.width;
    const std::string attention = prefix + "self_attn.", feed = prefix + "feed_forward.";
    TransformerLayer layer{};
    layer.attention_norm_gain = Kept(prefix + "norm1.weight");
    layer.attention_norm_bias = Kept(prefix + "norm1.bias");
    layer.qkv_weight = Projections(attention, "weight", {d, d}, Role::kPrunedAlso);
    layer.qkv_bias = Projections(attention, "bias", {d}, Role::kQuantised);
    layer.out_weight = Weight(attention + "linear_out.", d, d);
    layer.out_bias = Bias(attention + "linear_out.", d);
    layer.inner_norm_gain = Kept(prefix + "norm2.weight");
    layer.inner_norm_bias = Kept(prefix + "norm2.bias");
    layer.inner_weight = Weight(feed + "w_1.", sizes_.inner, d);
    layer.inner_bias = Bias(feed + "w_1.", sizes_.inner);
    layer.outer_weight = Weight(feed + "w_2.", d, sizes_.inner);
    layer.outer_bias = Bias(feed + "w_2.", d);
    return layer;
  }

  // The weights or the biases (`part`) of queries, keys and values; `shape` is that of one of them.
  TensorId Projections(const std::string& attention, const std::string& part, const Shape& shape,
                       Role role) {
    Shape all = shape;
    all[0] *= 3;
    std::vector<const CheckpointTensor*> tensors;
    for (const char* projection : {"linear_q.", "linear_k.", "linear_v."}) {
      tensors.push_back(builder_.Claim(attention + projection + part, shape));
    }
    return builder_.AddMade(
        attention + "qkv." + part, all, role, tensors,
        [heads = sizes_.heads](const std::vector<float>& values) -> Result<std::vector<float>> {
          return RowsByHead(values, 3, heads);
        });
  }

  const FamilyInput& input_;
  const EspnetSizes sizes_;
  DraftBuilder builder_;
};

}  // namespace

std::span<const OptionTable> EspnetTransformerOptions() {
  static const std::array kTables = {kEspnetTransformerOptions, EspnetTaskOptions()};
  return kTables;
}

bool LooksLikeEspnetTransformer(std::span<const CheckpointTensor> weights) {
  return HasTensorUnder(weights, "lm.embed.") && HasTensorUnder(weights, "lm.encoder.encoders.");
}

Result<LoadedModel> LoadEspnetTransformer(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const EspnetConfig config,
                           ReadEspnetConfig(input, "transformer", kEspnetTransformerOptions));
  KINGLET_ASSIGN_OR_RETURN(const EspnetSizes sizes, ReadSizes(config));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, EspnetTransformerLoader(input, sizes).Load());
  KINGLET_RETURN_IF_ERROR(SetEspnetTokens(config, model));
  return model;
}

}  // namespace kinglet
