// The family `bert`: masked models of Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional
// Transformers for Language Understanding", as Hugging Face's BertForMaskedLM, BertForPreTraining,
// BertForSequenceClassification, BertForQuestionAnswering and BertModel save them. A folder has
// config.json and pytorch_model.bin or model.safetensors.
// Peculiarities:
//   - names begin with "bert." except in a BertModel
//   - files of 2018 and 2019 call a norm's weight and bias gamma and beta
//   - model.safetensors omits the decoder's weight and bias where they are the word table and
//     cls.predictions.bias; pytorch_model.bin stores both
//   - position_ids, which are not trained, are not read
//   - files of 2018 and 2019 with qa_outputs have a pooler, which is not used and not read
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/checkpoints/config_file.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/families.h"
#include "converters/families/hugging_face.h"
#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr const char* kBertLayers = "encoder.layer.";
constexpr const char* kBertWords = "embeddings.word_embeddings.weight";
constexpr const char* kBertDecoder = "cls.predictions.decoder.weight";

// RoBERTa, ELECTRA and others give their tensors the same names, and number positions otherwise.
constexpr std::array<FixedOption, 10> kFixedOfBert = {{
    {"model_type", "'bert'"},
    {"position_embedding_type", "'absolute'"},
    {"is_decoder", "False"},
    {"add_cross_attention", "False"},
    {"is_encoder_decoder", "False"},
    {"cross_attention_hidden_size", ""},
    {"pruned_heads", "{}"},
    {"per_layer_config", "{}"},
    {"quantization_config", ""},
    {"auto_map", ""},  // the network's code is not part of the library
}};
constexpr OptionTable kBertOptions = {
    "`config.json`",
    "hidden_size num_hidden_layers num_attention_heads intermediate_size max_position_embeddings "
    "type_vocab_size vocab_size hidden_act layer_norm_eps tie_word_embeddings",
    kFixedOfBert,
    kHuggingFaceIgnored,
    {},
    "layer_norm_eps tie_word_embeddings model_type position_embedding_type"};

// The settings of config.json.
struct BertSettings : TransformerConfig {
  uint32_t inner = 0, segments = 0;
  double epsilon = 0;
  Activation activation = Activation::kGelu;
  bool tied = true;
};

Result<BertSettings> ReadSettings(const ConfigFile& file) {
  BertSettings settings;
  KINGLET_ASSIGN_OR_RETURN(
      static_cast<TransformerConfig&>(settings),
      ReadTransformerSizes(file, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                  "max_position_embeddings", "vocab_size"}));
  KINGLET_ASSIGN_OR_RETURN(settings.inner, ReadSize(file, "intermediate_size", kMaxExtent));
  KINGLET_ASSIGN_OR_RETURN(settings.segments, ReadSize(file, "type_vocab_size", kMaxExtent));
  KINGLET_ASSIGN_OR_RETURN(settings.activation, ReadActivation(file, "hidden_act"));
  KINGLET_ASSIGN_OR_RETURN(settings.epsilon, file.NumberOr("layer_norm_eps", 1e-12));
  KINGLET_ASSIGN_OR_RETURN(settings.tied, TiesWordTables(file));
  return settings;
}

// The oldest files have no model_type, but name the class that wrote them.
Status CheckClasses(const ConfigFile& file) {
  if (file.Has("model_type") || !file.Has("architectures")) return {};
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> classes, file.Texts("architectures"));
  for (const std::string& name : classes) {
    if (name.starts_with("Bert")) continue;
    return Status::Refusal(KINGLET_UNSUPPORTED, file.path(), "architectures", "classes of BERT",
                           QuotedName(name) + " (kinglet does not run that network)");
  }
  return {};
}

class BertLoader {
 public:
  BertLoader(const BertSettings& settings, const FamilyInput& input)
      : settings_(settings), network_(input.weights, input.report) {
    prefix_ = network_.Has("bert." + Layer(0) + "attention.self.query.weight") ? "bert." : "";
  }

  Result<LoadedModel> Load() {
    const uint64_t d = settings_.width;
    AdaptiveEmbedding embedding = Embedding();
    MaskedModel model = Model();
    ModelDraft& draft = network_.model.draft;
    std::vector<Block>& blocks = draft.description.blocks;
    std::optional<DenseLayers> transform;
    std::optional<AdaptiveSoftmax> softmax;
    if (network_.Has("cls.predictions.transform.dense.weight")) {
      transform = Transform();
      KINGLET_ASSIGN_OR_RETURN(softmax, Softmax());
    }
    const std::string pooler = prefix_ + "pooler.dense";
    if (network_.Has("qa_outputs.weight")) {
      RemoveExcluded(pooler);
    } else if (network_.Has(pooler + ".weight")) {
      model.pooler = Linear(pooler, d, d, Activation::kTanh);
    }
    AddScores(model);
    if (model.scores && model.scored != ScoredPart::kSpans && !model.pooler) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", "state dict",
          pooler + ".weight, as scores of texts are of the pooled vector",
          "none (scores of each token, BertForTokenClassification, are not read)");
    }
    KINGLET_RETURN_IF_ERROR(network_.CheckNames("a BERT of " + std::to_string(settings_.layers) +
                                                " layers of " + std::to_string(d)));
    draft.description.vocabulary_size = settings_.words;
    blocks.emplace_back(std::move(embedding));
    blocks.emplace_back(std::move(model));
    if (transform) blocks.emplace_back(*std::move(transform));
    if (softmax) blocks.emplace_back(*std::move(softmax));
    return network_.Finish();
  }

 private:
  static std::string Layer(uint64_t i) { return kBertLayers + std::to_string(i) + "."; }

  // A linear layer that the answers do not depend on, if there is one.
  void RemoveExcluded(const std::string& name) {
    if (!network_.Has(name + ".weight")) return;
    for (const char* part : {".weight", ".bias"}) network_.ClaimUnshaped(name + part, false);
    network_.model.notes.push_back(name + " is omitted: scores of spans do not use it");
  }

  void ShareTables() {
    ShareWordTables(settings_.tied, prefix_ + kBertWords, kBertDecoder, network_);
  }

  AdaptiveEmbedding Embedding() {
    if (network_.Has(kBertDecoder)) ShareTables();
    words_ = network_.Claim(prefix_ + kBertWords, {settings_.words, settings_.width});
    network_.ClaimUnshaped(prefix_ + "embeddings.position_ids", /*required=*/false);
    AdaptiveEmbedding embedding;
    embedding.name = "embedding";
    embedding.width = settings_.width;
    embedding.scale = 1;
    const TensorId words = network_.Add(prefix_ + kBertWords, {settings_.words, settings_.width},
                                        Role::kPrunedAlso, words_);
    embedding.bins.push_back({0, settings_.words, words, std::nullopt});
    return embedding;
  }

  MaskedModel Model() {
    const uint64_t d = settings_.width;
    const std::string embeddings = prefix_ + "embeddings.";
    MaskedModel model{};
    model.name = "text";
    model.segments.width = static_cast<uint32_t>(d);
    model.segments.scale = 1;
    const TensorId segments = network_.Add(embeddings + "token_type_embeddings.weight",
                                           {settings_.segments, d}, Role::kKept);
    model.segments.bins.push_back({0, settings_.segments, segments, std::nullopt});
    std::tie(model.norm_gain, model.norm_bias) =
        AddNorm(network_, embeddings + "LayerNorm.", settings_.width);
    TransformerDecoder& stack = model.stack;
    stack.width = static_cast<uint32_t>(d);
    stack.heads = settings_.heads;
    stack.key_size = stack.value_size = settings_.width / settings_.heads;
    stack.window = settings_.positions;
    stack.start = StreamStart::kMasked;
    stack.norm_order = NormOrder::kPost;
    stack.epsilon = settings_.epsilon;
    stack.activation = settings_.activation;
    stack.positions = PositionTable{network_.Add(embeddings + "position_embeddings.weight",
                                                 {settings_.positions, d}, Role::kKept)};
    for (uint64_t i = 0; i < settings_.layers; ++i) {
      stack.layers.push_back(StackLayer(prefix_ + Layer(i)));
    }
    return model;
  }

  TransformerLayer StackLayer(const std::string& prefix) {
    const uint64_t d = settings_.width, inner = settings_.inner;
    TransformerLayer layer{};
    const std::string attention = prefix + "attention.self.";
    std::tie(layer.qkv_weight, layer.qkv_bias) = AddByHead(
        network_, attention + "qkv.",
        {attention + "query.", attention + "key.", attention + "value."}, 3, d, settings_.heads);
    std::tie(layer.out_weight, layer.out_bias) =
        AddLinear(network_, prefix + "attention.output.dense.", d, d);
    std::tie(layer.attention_norm_gain, layer.attention_norm_bias) =
        AddNorm(network_, prefix + "attention.output.LayerNorm.", settings_.width);
    std::tie(layer.inner_weight, layer.inner_bias) =
        AddLinear(network_, prefix + "intermediate.dense.", inner, d);
    std::tie(layer.outer_weight, layer.outer_bias) =
        AddLinear(network_, prefix + "output.dense.", d, inner);
    std::tie(layer.inner_norm_gain, layer.inner_norm_bias) =
        AddNorm(network_, prefix + "output.LayerNorm.", settings_.width);
    return layer;
  }

  // The head that predicts masked words: LN(activation(W x + b)), then a full softmax.
  DenseLayers Transform() {
    const std::string name = "cls.predictions.transform.";
    DenseLayers dense{"transform", DensePlace::kOutput};
    DenseLayer layer =
        Linear(name + "dense", settings_.width, settings_.width, settings_.activation);
    layer.norm = DenseNorm::kLayer;
    layer.norm_last = true;
    layer.epsilon = settings_.epsilon;
    std::tie(layer.norm_gain, layer.norm_bias) =
        AddNorm(network_, name + "LayerNorm.", settings_.width);
    dense.layers.push_back(layer);
    return dense;
  }

  Result<AdaptiveSoftmax> Softmax() {
    const Shape shape = {settings_.words, settings_.width};
    AdaptiveSoftmax softmax{};
    softmax.name = "decoder";
    softmax.width = settings_.width;
    softmax.head_size = settings_.words;
    ShareTables();
    const CheckpointTensor* own = network_.Claim(kBertDecoder, shape);
    if (own != nullptr && words_ != nullptr) {
      KINGLET_RETURN_IF_ERROR(
          network_.Tie(*words_, *own, settings_.tied ? "tie_word_embeddings" : "").status());
    }
    softmax.head_table = network_.Add(kBertDecoder, shape, Role::kPrunedAlso, own);
    softmax.head_bias = network_.Add("cls.predictions.bias", {settings_.words}, Role::kQuantised);
    if (network_.Has("cls.predictions.decoder.bias")) {
      network_.Claim("cls.predictions.decoder.bias", {settings_.words});  // the same parameter
    }
    return softmax;
  }

  void AddScores(MaskedModel& model) {
    const struct {
      const char* name;
      ScoredPart part;
    } heads[] = {{"classifier", ScoredPart::kClasses},
                 {"cls.seq_relationship", ScoredPart::kNextSentence},
                 {"qa_outputs", ScoredPart::kSpans}};
    for (const auto& head : heads) {
      const std::string name = head.name;
      if (!network_.Has(name + ".weight")) continue;
      const CheckpointTensor* const weight = network_.Find(name + ".weight");
      const bool classes = head.part == ScoredPart::kClasses;
      const uint64_t rows = classes && !weight->shape.empty() ? weight->shape[0] : 2;
      model.scores = Linear(name, rows, settings_.width, Activation::kNone);
      model.scored = head.part;
      return;
    }
  }

  DenseLayer Linear(const std::string& name, uint64_t rows, uint64_t columns,
                    Activation activation) {
    DenseLayer layer{};
    std::tie(layer.weight, layer.bias) = AddLinear(network_, name + ".", rows, columns);
    layer.activation = activation;
    return layer;
  }

  const BertSettings settings_;
  Network network_;
  std::string prefix_;  // "bert.", or nothing
  const CheckpointTensor* words_ = nullptr;
};

std::span<const OptionTable> BertOptions() { return {&kBertOptions, 1}; }

// Errors: KINGLET_INVALID_CHECKPOINT; KINGLET_UNSUPPORTED for options that the blocks cannot
// express (relative positions, a decoder) and unknown ones, by the option's name.
Result<LoadedModel> LoadBert(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ReadHuggingFaceConfig(kBertOptions, input));
  KINGLET_RETURN_IF_ERROR(CheckClasses(file));
  KINGLET_ASSIGN_OR_RETURN(const BertSettings settings, ReadSettings(file));
  return BertLoader(settings, input).Load();
}

}  // namespace

constexpr Family kBert = {
    .name = "bert",
    .marks = "bert.encoder.layer.0.attention.self.query.*|encoder.layer.0.attention.self.query.*",
    .load = LoadBert,
    .options = BertOptions,
};

}  // namespace kinglet
