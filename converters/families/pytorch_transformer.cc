// The family `pytorch-examples-transformer`: Transformer language models (norm last, ReLU) with a
// stored table of sinusoids.
// Framework: pytorch/examples, word_language_model with --model Transformer (TransformerModel, an
// nn.Transformer whose decoder is a linear layer). Files: model.pt, the pickled module; also its
// state dict. Peculiarities:
//   - words are numbered in order of first appearance
//   - the embedding is multiplied by sqrt(its width); norms have PyTorch's epsilon, and one more
//     comes after the layers
//   - the number of heads is an attribute of the module and follows from no shape
//   - the framework reads texts in pieces of --bptt tokens, each at positions from 0
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/config_file.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/checkpoints/saved_module.h"
#include "converters/families/config_options.h"
#include "converters/families/families.h"
#include "converters/families/pickled_modules.h"
#include "converters/families/speech_stream.h"
#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr double kTorchEpsilon = 1e-5;

// The arguments of the framework's main.py.
constexpr OptionTable kExamplesTransformerConfig = {
    "`config.yaml`, `--config`",
    "nhead",
    {},
    "accel batch_size bptt clip cuda data dropout dry_run epochs log_interval lr mps onnx_export "
    "save seed tied",
    "model emsize nhid nlayers",
    "nhead"};

constexpr std::array<FixedOption, 1> kFixedOfTransformer = {{{"batch_first", "False"}}};
constexpr PickledClass kExamplesTransformerClasses[] = {
    {"TransformerModel",
     {"`TransformerModel`", "", kFixedOfTransformer, "model_type src_mask", "d_model nhead ninp"}},
    {"PositionalEncoding", {"`PositionalEncoding`", "", {}, ""}},
};
constexpr PickledPlace kExamplesTransformerPlaces[] = {
    {"", "TransformerModel"},
    {"pos_encoder", "PositionalEncoding"},
    {"pos_encoder.dropout", "Dropout"},
    {"input_emb", "Embedding"},
    {"encoder", "TransformerEncoder"},
    {"encoder.layers", "ModuleList"},
    {"encoder.layers.*", "TransformerEncoderLayer"},
    {"encoder.layers.*.self_attn", "MultiheadAttention"},
    {"encoder.layers.*.self_attn.out_proj", "NonDynamicallyQuantizableLinear Linear"},
    {"encoder.layers.*.linear1", "Linear"},
    {"encoder.layers.*.linear2", "Linear"},
    {"encoder.layers.*.norm1", "LayerNorm"},
    {"encoder.layers.*.norm2", "LayerNorm"},
    {"encoder.layers.*.dropout", "Dropout"},
    {"encoder.layers.*.dropout1", "Dropout"},
    {"encoder.layers.*.dropout2", "Dropout"},
    {"encoder.norm", "LayerNorm"},
    {"decoder", "Linear"}};

// The number of heads: of the pickled module, or of the configuration. `width` is 0 if it is
// unknown.
Result<uint32_t> HeadsOf(const FamilyInput& input, uint32_t width) {
  std::optional<int64_t> heads;
  std::string where = input.checkpoint;
  if (const PickleNode* network = input.modules.network; network != nullptr) {
    const NodeRef attention = Submodule(*network, "encoder.layers.0.self_attn");
    if (attention != nullptr) heads = IntegerAttribute(*attention, "num_heads");
  }
  const std::string path =
      input.config.empty() && !heads ? ConfigNextTo(input.checkpoint) : input.config;
  if (!path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(path));
    KINGLET_RETURN_IF_ERROR(CheckConfig(kExamplesTransformerConfig, file, input.ignored));
    if (!heads || file.Has("nhead")) {
      KINGLET_ASSIGN_OR_RETURN(heads, file.Integer("nhead"));
      where = path;
    }
  }
  if (!heads) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, where, "nhead",
                           "the number of heads of the network",
                           "a state dict alone (write \"nhead: 2\", the argument of its training, "
                           "to config.yaml next to it)");
  }
  if (*heads < 1 || *heads > int64_t{kMaxExtent} || width % *heads != 0) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, where, "nhead",
                           "a divisor of the width " + std::to_string(width),
                           std::to_string(*heads));
  }
  return static_cast<uint32_t>(*heads);
}

// The modules of a network have copies of its settings, which PyTorch reads.
Status CheckCopies(const FamilyInput& input, const TransformerDecoder& decoder, uint32_t layers) {
  const auto check = [&input](const std::string& path, const std::string& name, double expected) {
    return CheckModuleAgrees(input.modules.network, input.checkpoint, path, name, expected);
  };
  KINGLET_RETURN_IF_ERROR(check("", "ninp", decoder.width));
  KINGLET_RETURN_IF_ERROR(check("encoder.norm", "eps", decoder.epsilon));
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string layer = "encoder.layers." + std::to_string(i);
    KINGLET_RETURN_IF_ERROR(check(layer + ".self_attn", "num_heads", decoder.heads));
    KINGLET_RETURN_IF_ERROR(check(layer + ".norm1", "eps", decoder.epsilon));
    KINGLET_RETURN_IF_ERROR(check(layer + ".norm2", "eps", decoder.epsilon));
  }
  return {};
}

Result<LoadedModel> LoadExamplesTransformer(const FamilyInput& input) {
  Network network(input.weights, input.report);
  const std::string embedding_name = "input_emb.weight", positions_name = "pos_encoder.pe";
  const uint32_t words = network.Dimension(embedding_name, 0);
  const uint32_t width = network.Dimension(embedding_name, 1);
  const uint32_t stored = network.Dimension(positions_name, 0);
  const uint32_t inner = network.Dimension("encoder.layers.0.linear1.weight", 0);
  KINGLET_ASSIGN_OR_RETURN(const uint32_t window, PositionsUsed(input, stored));
  KINGLET_ASSIGN_OR_RETURN(const uint32_t heads, HeadsOf(input, width));

  AdaptiveEmbedding embedding{"input_emb", width, std::sqrt(static_cast<double>(width)), {}};
  embedding.bins.push_back(
      {0, words, network.Add(embedding_name, {words, width}, Role::kPrunedAlso), std::nullopt});
  TransformerDecoder decoder{};
  decoder.name = "encoder";
  decoder.width = width;
  decoder.heads = heads;
  decoder.key_size = decoder.value_size = width / heads;
  decoder.window = window;
  decoder.start = StreamStart::kMasked;
  decoder.norm_order = NormOrder::kPost;
  decoder.epsilon = kTorchEpsilon;
  decoder.positions = AddStoredPositions(
      network, positions_name, network.Claim(positions_name, {stored, 1, width}), window, width);
  const uint32_t layers = CountLayers(input.weights, "encoder.layers.", ".linear1.weight");
  KINGLET_RETURN_IF_ERROR(CheckCopies(input, decoder, layers));
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string layer = "encoder.layers." + std::to_string(i) + ".";
    const std::string joined = layer + "self_attn.in_proj_";
    decoder.layers.push_back(AddTransformerLayer(network,
                                                 {layer + "norm1.",
                                                  joined,
                                                  {joined},
                                                  layer + "self_attn.out_proj.",
                                                  layer + "norm2.",
                                                  layer + "linear1.",
                                                  layer + "linear2."},
                                                 {width, heads, inner}));
  }
  std::tie(decoder.final_norm_gain, decoder.final_norm_bias) =
      AddNorm(network, "encoder.norm.", width);
  AdaptiveSoftmax softmax{};
  softmax.name = "decoder";
  softmax.width = width;
  softmax.head_size = words;
  std::tie(softmax.head_table, softmax.head_bias) = AddLinear(network, "decoder.", words, width);
  if (!input.memory_length) {
    network.model.notes.push_back(
        "a text begins again at position 0 after " + std::to_string(stored) +
        " tokens, in the framework after --bptt (35); --mem-len N makes it N + 1");
  }
  ModelDescription& description = network.model.draft.description;
  description.vocabulary_size = words;
  description.blocks = {std::move(embedding), std::move(decoder), std::move(softmax)};
  KINGLET_RETURN_IF_ERROR(
      network.CheckNames("a " + std::string(kPytorchTransformer.name) + " network"));
  if (words == 0 || width == 0 || stored == 0 || inner == 0) {
    return RefuseCheckpoint("state dict",
                            "input_emb.weight [words, d], pos_encoder.pe [p, 1, d] and "
                            "encoder.layers.0.linear1.weight [n, d]",
                            std::to_string(words) + " words, d " + std::to_string(width) + ", p " +
                                std::to_string(stored) + ", n " + std::to_string(inner));
  }
  return network.Finish();
}

const PickledNetwork& ExamplesTransformerModules() {
  static constexpr PickledNetwork kModules = {
      kExamplesTransformerPlaces, {}, kExamplesTransformerClasses};
  return kModules;
}

std::span<const OptionTable> ExamplesTransformerOptions() {
  static const std::vector<OptionTable> kTables =
      ClassOptions(ExamplesTransformerModules(), {kExamplesTransformerConfig});
  return kTables;
}

}  // namespace

constexpr Family kPytorchTransformer = {
    .name = "pytorch-examples-transformer",
    .marks = "input_emb.weight encoder.layers.*.self_attn.in_proj_weight decoder.weight",
    .load = LoadExamplesTransformer,
    .takes_memory_length = true,
    .options = ExamplesTransformerOptions,
    .modules = ExamplesTransformerModules,
    .word_order = WordOrder::kFirstAppearance,
};

}  // namespace kinglet
