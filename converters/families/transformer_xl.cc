#include "converters/families/transformer_xl.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/families/transformer_xl_network.h"
#include "converters/sources/checkpoint_path.h"
#include "converters/sources/config_file.h"
#include "converters/sources/saved_module.h"

namespace kinglet {
namespace {

// Settings of the configuration file, or else attributes of the pickled objects.
class Settings {
 public:
  static Result<Settings> Read(const FamilyInput& input) {
    std::string path = input.config;
    if (path.empty() && input.modules.network == nullptr) path = ConfigBeside(input.checkpoint);
    if (path.empty()) return Settings(input, nullptr);
    KINGLET_ASSIGN_OR_RETURN(ConfigFile config, ConfigFile::Read(path));
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
    if (!value) return Missing(module, name, "a truth value");
    return *value;
  }
  Result<std::vector<int64_t>> Integers(const std::string& module, const std::string& name) const {
    if (Configured(name)) return config_->Integers(name);
    const NodeRef object = Object(module);
    const auto value = object == nullptr ? std::nullopt : IntegersAttribute(*object, name);
    if (!value) return Missing(module, name, "a list of integers");
    return *value;
  }

  // An attribute of the network itself, or `otherwise` if there is none.
  Result<int64_t> IntegerOr(const std::string& name, int64_t otherwise) const {
    if (Configured(name)) return config_->Integer(name);
    const NodeRef object = Object("");
    return object == nullptr ? otherwise : IntegerAttribute(*object, name).value_or(otherwise);
  }
  double EpsilonOf(const std::string& norm, double otherwise) const {
    const NodeRef object = Object(norm);
    return object == nullptr ? otherwise : NumberAttribute(*object, "eps").value_or(otherwise);
  }

 private:
  Settings(const FamilyInput& input, std::unique_ptr<const ConfigFile> config)
      : input_(&input), config_(std::move(config)) {}

  bool Configured(const std::string& name) const {
    return config_ != nullptr && config_->Has(name);
  }
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
                                 " of the model pickled whole, or in config.yaml beside it or "
                                 "another --config file",
                             "a state dict, which has none");
    }
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, input_->checkpoint, where, expected, "none");
  }

  const FamilyInput* input_;
  std::unique_ptr<const ConfigFile> config_;  // null: none was given
};

Result<TransformerXlNetwork> NetworkOfSettings(const Settings& settings,
                                               const std::string& checkpoint) {
  KINGLET_ASSIGN_OR_RETURN(const int64_t attention_type, settings.IntegerOr("attn_type", 0));
  KINGLET_ASSIGN_OR_RETURN(const int64_t extended_length, settings.IntegerOr("ext_len", 0));
  KINGLET_ASSIGN_OR_RETURN(const int64_t sampled, settings.IntegerOr("sample_softmax", -1));
  KINGLET_RETURN_IF_ERROR(
      CheckTransformerXlKind(checkpoint, attention_type, extended_length, sampled));
  TransformerXlNetwork network;
  network.family = kTransformerXlFamily;
  const std::pair<const char*, int64_t*> integers[] = {
      {"n_token", &network.words},           {"d_model", &network.width},
      {"d_embed", &network.embedding_width}, {"n_head", &network.heads},
      {"d_head", &network.head_size},        {"n_layer", &network.layers},
      {"mem_len", &network.memory_length},   {"clamp_len", &network.clamp_length}};
  for (const auto& [name, value] : integers) {
    KINGLET_ASSIGN_OR_RETURN(*value, settings.Integer("", name));
  }
  KINGLET_ASSIGN_OR_RETURN(network.same_length, settings.Boolean("", "same_length"));
  KINGLET_ASSIGN_OR_RETURN(network.divisor, settings.Integer("crit", "div_val"));
  KINGLET_ASSIGN_OR_RETURN(network.cutoffs, settings.Integers("crit", "cutoffs"));
  // The pickled object's list also holds the number of words, at its end.
  if (!network.cutoffs.empty() && network.cutoffs.back() == network.words) {
    network.cutoffs.pop_back();
  }
  KINGLET_ASSIGN_OR_RETURN(network.pre_norm, settings.Boolean("layers.0.dec_attn", "pre_lnorm"));
  network.epsilon = settings.EpsilonOf("layers.0.dec_attn.layer_norm", network.epsilon);
  return network;
}

}  // namespace

bool LooksLikeTransformerXl(std::span<const SourceTensor> weights) {
  return HasTensorUnder(weights, "layers.0.dec_attn.");
}

Result<LoadedModel> LoadTransformerXl(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const Settings settings, Settings::Read(input));
  KINGLET_ASSIGN_OR_RETURN(TransformerXlNetwork network,
                           NetworkOfSettings(settings, input.checkpoint));
  if (input.memory_length) network.memory_length = *input.memory_length;
  return LoadTransformerXlNetwork(network, input.weights);
}

}  // namespace kinglet
