#include "converters/families/pickled_modules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/families/pickled_options.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

constexpr std::string_view kTorchPackage = "torch.nn.";
// A class that only contains modules and tensors, at any path, and computes nothing itself.
constexpr std::string_view kBareModule = "Module";
// The state that torch.nn.Module itself keeps for every module.
constexpr std::string_view kModuleState =
    "training _parameters _buffers _non_persistent_buffers_set _modules _backward_hooks "
    "_backward_pre_hooks _is_full_backward_hook _state_dict_hooks _state_dict_pre_hooks "
    "_load_state_dict_pre_hooks _load_state_dict_post_hooks _forward_hooks_with_kwargs "
    "_forward_hooks_always_called _forward_pre_hooks_with_kwargs _backend _compiled_call_impl "
    "_is_torch_compile";
// Functions that PyTorch runs before and after a module's own.
constexpr std::array<std::string_view, 2> kHooks = {"_forward_hooks", "_forward_pre_hooks"};

// Embeddings with max_norm change their rows as they are read.
constexpr std::array<FixedOption, 1> kFixedOfEmbedding = {{{"max_norm", ""}}};
constexpr std::array<FixedOption, 1> kFixedOfNorm = {{{"elementwise_affine", "True"}}};
constexpr std::array<FixedOption, 2> kFixedOfRelu = {{{"threshold", "0"}, {"value", "0"}}};
constexpr std::array<FixedOption, 2> kFixedOfRecurrent = {
    {{"bidirectional", "False"}, {"bias", "True"}}};
// A stream has one text, so the order of a batch's axes changes nothing. A weight drop leaves
// weights as attributes.
constexpr OptionTable kRecurrentAttributes = {
    "`LSTM`, `GRU`, `RNN`", "mode nonlinearity", kFixedOfRecurrent,
    "batch_first dropout dropout_state flatten_parameters _flat_weights_names _all_weights "
    "_flat_weights _flat_weight_refs _data_ptrs _param_buf_size weight_*",
    "input_size hidden_size num_layers proj_size"};
constexpr std::array<FixedOption, 3> kFixedOfLayer = {
    {{"norm_first", "False"},
     {"activation", "class or function 'torch.nn.functional.relu'"},
     {"activation_relu_or_gelu", "1"}}};
constexpr std::array<FixedOption, 4> kFixedOfAttention = {
    {{"bias_k", ""}, {"bias_v", ""}, {"add_zero_attn", "False"}, {"_qkv_same_embed_dim", "True"}}};
constexpr std::array kTorchClasses = {
    PickledClass{kBareModule, {"`Module`", "", {}, ""}},
    PickledClass{"ModuleList", {"`ModuleList`", "", {}, ""}},
    PickledClass{"Sequential", {"`Sequential`", "", {}, ""}},
    // Entries that are None are attributes.
    PickledClass{"ParameterList",
                 {"`ParameterList`", "", {}, "_size 0* 1* 2* 3* 4* 5* 6* 7* 8* 9*"}},
    PickledClass{
        "Embedding",
        {"`Embedding`", "", kFixedOfEmbedding, "padding_idx norm_type scale_grad_by_freq sparse",
         "num_embeddings embedding_dim"}},
    PickledClass{"Linear", {"`Linear`", "", {}, "weight", "in_features out_features"}},
    PickledClass{"LSTM", kRecurrentAttributes},
    PickledClass{"GRU", kRecurrentAttributes},
    PickledClass{"RNN", kRecurrentAttributes},
    PickledClass{"LayerNorm", {"`LayerNorm`", "eps", kFixedOfNorm, "", "normalized_shape"}},
    PickledClass{"ReLU", {"`ReLU`", "", kFixedOfRelu, "inplace"}},
    PickledClass{"Dropout", {"`Dropout`", "", {}, "p inplace"}},
    PickledClass{"TransformerEncoder",
                 {"`TransformerEncoder`",
                  "",
                  {},
                  "enable_nested_tensor use_nested_tensor mask_check",
                  "num_layers norm"}},
    PickledClass{"TransformerEncoderLayer", {"`TransformerEncoderLayer`", "", kFixedOfLayer, ""}},
    PickledClass{"MultiheadAttention",
                 {"`MultiheadAttention`", "num_heads", kFixedOfAttention, "dropout batch_first",
                  "embed_dim kdim vdim head_dim"}},
    PickledClass{"NonDynamicallyQuantizableLinear",
                 {"`NonDynamicallyQuantizableLinear`", "", {}, "", "in_features out_features"}},
    PickledClass{"CrossEntropyLoss",
                 {"`CrossEntropyLoss`",
                  "",
                  {},
                  "ignore_index label_smoothing reduce reduction size_average"}},
};

bool IsIndexDigit(char c) { return c >= '0' && c <= '9'; }

// The first component of a path, which is taken off.
std::string_view TakeComponent(std::string_view& path) {
  const std::string_view component = path.substr(0, path.find('.'));
  path.remove_prefix(std::min(path.size(), component.size() + 1));
  return component;
}

bool FitsPlace(std::string_view pattern, std::string_view path) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = TakeComponent(pattern), found = TakeComponent(path);
    if (wanted == "*" ? !std::all_of(found.begin(), found.end(), IsIndexDigit) : wanted != found) {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsEmpty(const PickleNode& node) {
  if (const auto* dict = node.As<PickleDict>()) return dict->items.empty();
  if (const auto* list = node.As<PickleList>()) return list->items.empty();
  return node.As<PickleNone>() != nullptr;
}

const PickledClass* FindClass(std::span<const PickledClass> classes, std::string_view name) {
  const auto found = std::find_if(classes.begin(), classes.end(),
                                  [name](const PickledClass& each) { return each.name == name; });
  return found == classes.end() ? nullptr : &*found;
}

class ModuleChecker {
 public:
  ModuleChecker(const PickledNetwork& known, const std::string& checkpoint, IgnoredOptions* ignored)
      : known_(known), checkpoint_(checkpoint), ignored_(ignored) {}

  // Checks the module at `path`, and those below it. `start` comes before paths in messages.
  Status Check(const PickleNode& module, std::span<const PickledPlace> places,
               const std::string& start, const std::string& path) const {
    const auto place = std::find_if(places.begin(), places.end(), [&](const PickledPlace& each) {
      return FitsPlace(each.path, path);
    });
    const std::string where = start + (path.empty() ? "" : ", " + path);
    const std::string& name = module.As<PickleObject>()->class_name;
    if (place == places.end()) {
      return Refuse(where, "no module, as this family's networks have none there",
                    QuotedName(name));
    }
    const PickledClass* known = Known(name);
    const bool bare = known != nullptr && known->name == kBareModule;
    if (known == nullptr || !(bare || Has(OptionNames(place->classes), known->name))) {
      std::string expected;
      for (const std::string_view each : OptionNames(place->classes)) {
        expected += (expected.empty() ? "a module of class " : " or ") + std::string(each);
      }
      return Refuse(where, expected, QuotedName(name));
    }
    KINGLET_RETURN_IF_ERROR(CheckAttributes(module, *known, where));
    for (const auto& [key, value] : ModuleAttribute(module, "_modules")->As<PickleDict>()->items) {
      const auto* below = key->As<std::string>();
      if (below == nullptr || !IsModule(*value)) continue;  // ModuleTensors refuses other values
      KINGLET_RETURN_IF_ERROR(
          Check(*value, places, start, path + (path.empty() ? "" : ".") + *below));
    }
    return {};
  }

 private:
  const PickledClass* Known(std::string_view class_name) const {
    const std::string_view name = class_name.substr(class_name.rfind('.') + 1);
    return FindClass(class_name.starts_with(kTorchPackage) ? TorchClasses() : known_.classes, name);
  }

  Status CheckAttributes(const PickleNode& module, const PickledClass& known,
                         const std::string& where) const {
    for (const std::string_view hook : kHooks) {
      const NodeRef functions = ModuleAttribute(module, hook);
      if (functions == nullptr || IsEmpty(*functions)) continue;
      return Refuse(where + ", " + std::string(hook), "no functions",
                    "functions that run with the module");
    }
    std::vector<StatedOption> stated = PickledOptions(module);
    const std::vector<std::string_view> common = OptionNames(kModuleState);
    std::erase_if(stated, [&common](const StatedOption& attribute) {
      return Has(common, attribute.name) || Has(kHooks, attribute.name);
    });
    return CheckOptions(known.attributes, checkpoint_, where + ", ", stated, ignored_);
  }

  Status Refuse(const std::string& where, const std::string& expected,
                const std::string& found) const {
    const bool quantised = found.find(".quantized.") != found.npos;
    return Status::Refusal(
        KINGLET_UNSUPPORTED, checkpoint_, where, expected,
        found + (quantised ? " (save the network from before quantisation)"
                           : " (save the network's state_dict(), if it is a network of this family "
                             "anyway)"));
  }

  const PickledNetwork& known_;
  const std::string& checkpoint_;
  IgnoredOptions* ignored_;
};

}  // namespace

std::span<const PickledClass> TorchClasses() { return kTorchClasses; }

std::vector<OptionTable> ClassOptions(const PickledNetwork& known,
                                      std::vector<OptionTable> configurations) {
  std::vector<OptionTable> tables = std::move(configurations);
  for (const PickledClass& each : known.classes) tables.push_back(each.attributes);
  return tables;
}

Status CheckPickledModules(const PickledNetwork* known, const SavedModules& modules,
                           std::string_view family, const std::string& checkpoint,
                           IgnoredOptions* ignored) {
  if (modules.network == nullptr) return {};
  if (known == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", checkpoint,
                           "a state dict, as the family " + std::string(family) + " saves",
                           "a pickled module (save its state_dict() with torch.save)");
  }
  const ModuleChecker checker(*known, checkpoint, ignored);
  KINGLET_RETURN_IF_ERROR(checker.Check(*modules.network, known->places, "network", ""));
  if (modules.criterion == nullptr) return {};
  return checker.Check(*modules.criterion, known->criterion, "criterion", "");
}

Status CheckModuleAgrees(const PickleNode* network, const std::string& checkpoint,
                         const std::string& path, const std::string& name, double expected) {
  const NodeRef module = network == nullptr ? nullptr : Submodule(*network, path);
  if (module == nullptr) return {};
  std::optional<double> value = NumberAttribute(*module, name);
  if (!value) {
    if (const auto truth = BooleanAttribute(*module, name)) value = *truth ? 1 : 0;
  }
  if (!value || std::fabs(*value - expected) <= 1e-12 * std::fabs(expected)) return {};
  return Status::Refusal(KINGLET_UNSUPPORTED, checkpoint,
                         "attribute " + path + (path.empty() ? "" : ".") + name,
                         NumberText(expected) + ", as the network's other modules have",
                         NumberText(*value) + " (a network whose modules differ needs a --recipe)");
}

}  // namespace kinglet
