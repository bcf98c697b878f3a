// The family `transformer-xl`: Transformer-XL (Dai et al. 2019, "Transformer-XL: Attentive Language
// Models beyond a Fixed-Length Context").
// Framework: kimiyoung/transformer-xl, PyTorch. Files: model.pt, the pickled model. Peculiarities:
//   - attributes of the pickled objects tell how the network runs; a --config file may replace
//     mem_len, clamp_len and same_length, as the framework's eval.py does, or give all of them
//     if only a state dict was saved
//   - the memory starts empty
//   - rows of cluster_weight are in reverse order of the bins
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/config_file.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/checkpoints/saved_module.h"
#include "converters/families/config_options.h"
#include "converters/families/families.h"
#include "converters/families/pickled_modules.h"
#include "converters/families/transformer_xl_network.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

constexpr std::array<FixedOption, 3> kFixedOfXl = {
    {{"attn_type", "0"}, {"ext_len", "0"}, {"sample_softmax", "-1|0"}}};
// The arguments of the framework's train.py, and those of MemTransformerLM that follow from them.
constexpr OptionTable kXlConfig = {
    "`config.yaml`, `--config`",
    "n_token d_model d_embed d_inner n_head d_head n_layer mem_len clamp_len same_length div_val "
    "cutoffs adaptive pre_lnorm tied not_tied tie_projs",
    kFixedOfXl,
    "batch_chunk batch_size clip clip_nonemb cuda data dataset debug decay_rate dropatt dropout "
    "dynamic_loss_scale emb_* eta_min eval_* finetune_v2 finetune_v3 fp16 gpu0_bsz init init_range "
    "init_std log_interval lr lr_min max_eval_steps max_step mom multi_gpu n_all_param "
    "n_nonemb_param optim patience proj_init_std restart restart_dir scheduler seed "
    "static_loss_scale tgt_len varlen warmup_step work_dir"};

constexpr std::array<PickledClass, 7> kXlClasses = {{
    {"MemTransformerLM",
     {"`MemTransformerLM`",
      "n_token d_model d_embed n_head d_head n_layer mem_len clamp_len same_length", kFixedOfXl,
      "tgt_len max_klen", "tie_weight"}},
    {"AdaptiveEmbedding",
     {"`AdaptiveEmbedding`",
      "div_val emb_scale",
      {},
      "",
      "n_token d_embed d_proj cutoffs cutoff_ends"}},
    {"RelPartialLearnableDecoderLayer", {"`RelPartialLearnableDecoderLayer`", "", {}, ""}},
    {"RelPartialLearnableMultiHeadAttn",
     {"`RelPartialLearnableMultiHeadAttn`",
      "n_head d_head scale pre_lnorm",
      {},
      "dropout",
      "d_model"}},
    {"PositionwiseFF", {"`PositionwiseFF`", "pre_lnorm", {}, "dropout", "d_model d_inner"}},
    {"PositionalEmbedding", {"`PositionalEmbedding`", "", {}, "", "demb"}},
    {"ProjectedAdaptiveLogSoftmax",
     {"`ProjectedAdaptiveLogSoftmax`",
      "div_val cutoffs",
      {},
      "keep_order",
      "n_token d_embed d_proj cutoff_ends shortlist_size n_clusters head_size"}},
}};
constexpr PickledPlace kXlPlaces[] = {
    {"", "MemTransformerLM"},
    {"word_emb", "AdaptiveEmbedding"},
    {"word_emb.emb_layers", "ModuleList"},
    {"word_emb.emb_layers.*", "Embedding"},
    {"word_emb.emb_projs", "ParameterList"},
    {"drop", "Dropout"},
    {"layers", "ModuleList"},
    {"layers.*", "RelPartialLearnableDecoderLayer"},
    {"layers.*.dec_attn", "RelPartialLearnableMultiHeadAttn"},
    {"layers.*.dec_attn.qkv_net", "Linear"},
    {"layers.*.dec_attn.r_net", "Linear"},
    {"layers.*.dec_attn.o_net", "Linear"},
    {"layers.*.dec_attn.drop", "Dropout"},
    {"layers.*.dec_attn.dropatt", "Dropout"},
    {"layers.*.dec_attn.layer_norm", "LayerNorm"},
    {"layers.*.pos_ff", "PositionwiseFF"},
    {"layers.*.pos_ff.CoreNet", "Sequential"},
    {"layers.*.pos_ff.CoreNet.0", "Linear"},
    {"layers.*.pos_ff.CoreNet.1", "ReLU"},
    {"layers.*.pos_ff.CoreNet.2", "Dropout"},
    {"layers.*.pos_ff.CoreNet.3", "Linear"},
    {"layers.*.pos_ff.CoreNet.4", "Dropout"},
    {"layers.*.pos_ff.layer_norm", "LayerNorm"},
    {"pos_emb", "PositionalEmbedding"},
    {"crit", "ProjectedAdaptiveLogSoftmax"},
    {"crit.out_layers", "ModuleList"},
    {"crit.out_layers.*", "Linear"},
    {"crit.out_projs", "ParameterList"},
};

// Settings of the configuration file, or else attributes of the pickled objects.
class Settings {
 public:
  static Result<Settings> Read(const FamilyInput& input) {
    std::string path = input.config;
    if (path.empty() && input.modules.network == nullptr) path = ConfigNextTo(input.checkpoint);
    if (path.empty()) return Settings(input, nullptr);
    KINGLET_ASSIGN_OR_RETURN(ConfigFile config, ConfigFile::Read(path));
    KINGLET_RETURN_IF_ERROR(CheckConfig(kXlConfig, config, input.ignored));
    return Settings(input, std::make_unique<const ConfigFile>(std::move(config)));
  }

  // `module` is the path, inside the network, of the object that has the attribute.
  Result<int64_t> Integer(const std::string& module, const std::string& name) const {
    if (Configured(name)) return config_->Integer(name);
    const NodeRef object = Object(module);
    const auto value = object == nullptr ? std::nullopt : IntegerAttribute(*object, name);
    if (!value) return Missing(module, name, "an integer");
    return *value;
  }
  Result<bool> Boolean(const std::string& module, const std::string& name) const {
    if (Configured(name)) return config_->Boolean(name);
    const NodeRef object = Object(module);
    const auto value = object == nullptr ? std::nullopt : BooleanAttribute(*object, name);
    if (!value) return Missing(module, name, "true or false");
    return *value;
  }
  Result<std::vector<int64_t>> Integers(const std::string& module, const std::string& name) const {
    if (Configured(name)) return config_->Integers(name);
    const NodeRef object = Object(module);
    const auto value = object == nullptr ? std::nullopt : IntegersAttribute(*object, name);
    if (!value) return Missing(module, name, "a list of integers");
    return *value;
  }

  // The options that tie tables and projections; no module has them.
  Status ReadTies(TransformerXlNetwork& network) const {
    network.tables_option = "tied";
    network.options_place =
        input_->modules.network == nullptr ? "config.yaml next to it, or --config," : "a --config";
    if (Configured("not_tied")) {
      KINGLET_ASSIGN_OR_RETURN(const bool untied, config_->Boolean("not_tied"));
      network.tied_tables = !untied;
    }
    if (Configured("tied")) {
      KINGLET_ASSIGN_OR_RETURN(network.tied_tables, config_->Boolean("tied"));
    }
    if (Configured("tie_projs")) {
      KINGLET_ASSIGN_OR_RETURN(network.tied_projections, config_->Booleans("tie_projs"));
    }
    return {};
  }

  bool Configured(const std::string& name) const {
    return config_ != nullptr && config_->Has(name);
  }
  bool HasModule(const std::string& path) const { return Object(path) != nullptr; }
  // Refuses a number or bool of a pickled object that is not `expected`.
  Status Agrees(const std::string& module, const std::string& name, double expected) const {
    if (Configured(name)) return {};
    return CheckModuleAgrees(input_->modules.network, input_->checkpoint, module, name, expected);
  }
  double EpsilonOf(const std::string& norm, double otherwise) const {
    const NodeRef object = Object(norm);
    return object == nullptr ? otherwise : NumberAttribute(*object, "eps").value_or(otherwise);
  }

 private:
  Settings(const FamilyInput& input, std::unique_ptr<const ConfigFile> config)
      : input_(&input), config_(std::move(config)) {}

  NodeRef Object(const std::string& path) const {
    const PickleNode* network = input_->modules.network;
    return network == nullptr ? nullptr : Submodule(*network, path);
  }
  Status Missing(const std::string& module, const std::string& name,
                 const std::string& expected) const {
    const std::string where = "attribute " + (module.empty() ? "" : module + ".") + name;
    if (input_->modules.network == nullptr) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, input_->checkpoint, where,
                             expected +
                                 " in the pickled model, in config.yaml next to it or in a "
                                 "--config file",
                             "a state dict, which has none");
    }
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, input_->checkpoint, where, expected, "none");
  }

  const FamilyInput* input_;
  std::unique_ptr<const ConfigFile> config_;  // nullptr if none was given
};

// The modules of a network have copies of its settings, which PyTorch reads.
Status CheckCopies(const Settings& settings, const TransformerXlNetwork& network) {
  const auto divisor = static_cast<double>(network.divisor);
  const double scale = 1 / std::sqrt(static_cast<double>(network.head_size));
  KINGLET_RETURN_IF_ERROR(settings.Agrees("word_emb", "div_val", divisor));
  KINGLET_RETURN_IF_ERROR(
      settings.Agrees("word_emb", "emb_scale", std::sqrt(static_cast<double>(network.width))));
  // Counts the layers that exist, because the stated number is not checked yet.
  for (size_t i = 0; settings.HasModule("layers." + std::to_string(i)); ++i) {
    const std::string layer = "layers." + std::to_string(i), attention = layer + ".dec_attn";
    KINGLET_RETURN_IF_ERROR(settings.Agrees(attention, "scale", scale));
    KINGLET_RETURN_IF_ERROR(
        settings.Agrees(attention, "n_head", static_cast<double>(network.heads)));
    KINGLET_RETURN_IF_ERROR(
        settings.Agrees(attention, "d_head", static_cast<double>(network.head_size)));
    for (const std::string& part : {attention, layer + ".pos_ff"}) {
      KINGLET_RETURN_IF_ERROR(settings.Agrees(part, "pre_lnorm", network.pre_norm ? 1 : 0));
      KINGLET_RETURN_IF_ERROR(settings.Agrees(part + ".layer_norm", "eps", network.epsilon));
    }
  }
  return {};
}

Result<TransformerXlNetwork> NetworkOfSettings(const Settings& settings) {
  TransformerXlNetwork network;
  network.family = kTransformerXl.name;
  const std::pair<const char*, int64_t*> integers[] = {
      {"n_token", &network.words},           {"d_model", &network.width},
      {"d_embed", &network.embedding_width}, {"n_head", &network.heads},
      {"d_head", &network.head_size},        {"n_layer", &network.layers},
      {"mem_len", &network.memory_length},   {"clamp_len", &network.clamp_length}};
  for (const auto& [name, value] : integers) {
    KINGLET_ASSIGN_OR_RETURN(*value, settings.Integer("", name));
  }
  if (settings.Configured("d_inner")) {
    KINGLET_ASSIGN_OR_RETURN(network.inner, settings.Integer("", "d_inner"));
  }
  KINGLET_ASSIGN_OR_RETURN(network.same_length, settings.Boolean("", "same_length"));
  KINGLET_ASSIGN_OR_RETURN(network.divisor, settings.Integer("crit", "div_val"));
  KINGLET_ASSIGN_OR_RETURN(network.cutoffs, settings.Integers("crit", "cutoffs"));
  // The pickled object's list also holds the number of words, at its end.
  if (!network.cutoffs.empty() && network.cutoffs.back() == network.words) {
    network.cutoffs.pop_back();
  }
  if (settings.Configured("adaptive") && !network.cutoffs.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const bool adaptive, settings.Boolean("", "adaptive"));
    if (!adaptive) {
      return RefuseCheckpoint("adaptive", "true, as there are cutoffs",
                              "false (write cutoffs: [] for a full softmax)");
    }
  }
  KINGLET_ASSIGN_OR_RETURN(network.pre_norm, settings.Boolean("layers.0.dec_attn", "pre_lnorm"));
  network.epsilon = settings.EpsilonOf("layers.0.dec_attn.layer_norm", network.epsilon);
  KINGLET_RETURN_IF_ERROR(settings.ReadTies(network));
  KINGLET_RETURN_IF_ERROR(CheckCopies(settings, network));
  return network;
}

const PickledNetwork& TransformerXlModules() {
  static constexpr PickledNetwork kModules = {kXlPlaces, {}, kXlClasses};
  return kModules;
}

std::span<const OptionTable> TransformerXlOptions() {
  static const std::vector<OptionTable> kTables = ClassOptions(TransformerXlModules(), {kXlConfig});
  return kTables;
}

// Errors: those of LoadTransformerXlNetwork, ConfigFile and CheckOptions;
// KINGLET_INVALID_CHECKPOINT for an attribute that neither module nor configuration has;
// KINGLET_UNSUPPORTED for modules that differ from each other. REQUIRES: CheckPickledModules
// accepts the modules.
Result<LoadedModel> LoadTransformerXl(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const Settings settings, Settings::Read(input));
  KINGLET_ASSIGN_OR_RETURN(TransformerXlNetwork network, NetworkOfSettings(settings));
  if (input.memory_length) network.memory_length = *input.memory_length;
  return LoadTransformerXlNetwork(network, input.weights, input.report);
}

}  // namespace

constexpr Family kTransformerXl = {
    .name = "transformer-xl",
    .marks = "layers.0.dec_attn.*",
    .load = LoadTransformerXl,
    .takes_memory_length = true,
    .options = TransformerXlOptions,
    .modules = TransformerXlModules,
    .word_order = WordOrder::kByCount,
};

}  // namespace kinglet
