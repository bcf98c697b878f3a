// The family `pytorch-examples`: recurrent language models of an embedding, one nn.LSTM, nn.GRU or
// nn.RNN of several layers, and a softmax.
// Framework: pytorch/examples, word_language_model. Files: model.pt, the pickled module; also its
// state dict. Peculiarities: words are numbered in order of first appearance; encoder and decoder
// may be tied.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/config_file.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/saved_module.h"
#include "converters/families/config_options.h"
#include "converters/families/families.h"
#include "converters/families/pickled_modules.h"
#include "converters/families/recurrent_model.h"

namespace kinglet {
namespace {

// The arguments of the framework's main.py, and the cell as its model names it.
constexpr OptionTable kExamplesConfig = {
    "`config.yaml`, `--config`",
    "rnn_type model emsize nhid nlayers tied",
    {},
    "accel batch_size bptt clip cuda data dropout dry_run epochs log_interval lr mps nhead "
    "onnx_export save seed",
    {},
    "rnn_type model emsize nhid nlayers tied"};

constexpr std::array<PickledClass, 1> kExamplesClasses = {
    {{"RNNModel",
      {"`RNNModel`", "rnn_type", {}, "dropout", "ntoken ninp nhid nlayers tie_weights"}}}};
constexpr PickledPlace kExamplesPlaces[] = {{"", "RNNModel"},
                                            {"drop", "Dropout"},
                                            {"encoder", "Embedding"},
                                            {"rnn", "LSTM GRU RNN"},
                                            {"decoder", "Linear"}};

Result<RecurrentCell> CellOf(const std::string& where, const std::string& type) {
  struct Known {
    std::string_view name;
    RecurrentCell cell;
  };
  static constexpr std::array<Known, 4> kKnown = {{{"LSTM", RecurrentCell::kLstm},
                                                   {"GRU", RecurrentCell::kGru},
                                                   {"RNN_TANH", RecurrentCell::kTanh},
                                                   {"RNN_RELU", RecurrentCell::kRelu}}};
  for (const Known& known : kKnown) {
    if (known.name == type) return known.cell;
  }
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, where, "rnn_type",
                         "LSTM, GRU, RNN_TANH or RNN_RELU", QuotedName(type));
}

// PyTorch runs the inner module's mode; rnn_type names it too. Empty if the file has no module.
Result<std::optional<RecurrentCell>> CellOfModule(const FamilyInput& input) {
  const PickleNode* module = input.modules.network;
  if (module == nullptr) return std::optional<RecurrentCell>();
  const NodeRef rnn = Submodule(*module, "rnn");
  const std::optional<std::string> mode =
      rnn == nullptr ? std::nullopt : TextAttribute(*rnn, "mode");
  const std::optional<std::string> type = TextAttribute(*module, "rnn_type");
  if (mode && type && *mode != *type) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, input.checkpoint, "rnn_type",
                           QuotedName(*mode) + ", the mode of its module rnn",
                           QuotedName(*type) + " (save the module's state_dict())");
  }
  if (!mode && !type) return std::optional<RecurrentCell>();
  KINGLET_ASSIGN_OR_RETURN(const RecurrentCell cell,
                           CellOf(input.checkpoint, mode ? *mode : *type));
  return std::optional(cell);
}

// The configuration next to a state dict, or the one that is given.
Status ReadConfiguration(const FamilyInput& input, RecurrentNames& names) {
  names.configuration = input.config;
  if (names.configuration.empty() && input.modules.network == nullptr) {
    names.configuration = ConfigNextTo(input.checkpoint);
  }
  if (names.configuration.empty()) return {};
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(names.configuration));
  KINGLET_RETURN_IF_ERROR(CheckConfig(kExamplesConfig, file, input.ignored));
  for (const char* key : {"rnn_type", "model"}) {
    if (!file.Has(key) || names.cell) continue;
    KINGLET_ASSIGN_OR_RETURN(const std::string type, file.Text(key));
    KINGLET_ASSIGN_OR_RETURN(names.cell, CellOf(names.configuration, type));
  }
  for (const auto& [name, what] : {std::pair("emsize", StatedSize::kInputs),
                                   {"nhid", StatedSize::kUnits},
                                   {"nlayers", StatedSize::kLayers}}) {
    if (!file.Has(name)) continue;
    KINGLET_ASSIGN_OR_RETURN(const int64_t size, file.Integer(name));
    names.stated.push_back({name, size, what});
  }
  if (file.Has("tied")) {
    KINGLET_ASSIGN_OR_RETURN(const bool tied, file.Boolean("tied"));
    if (tied) names.tied_by = "tied";
  }
  return {};
}

const PickledNetwork& PytorchExamplesModules() {
  static constexpr PickledNetwork kModules = {kExamplesPlaces, {}, kExamplesClasses};
  return kModules;
}

std::span<const OptionTable> PytorchExamplesOptions() {
  static const std::vector<OptionTable> kTables =
      ClassOptions(PytorchExamplesModules(), {kExamplesConfig});
  return kTables;
}

// The cell (LSTM, GRU, RNN_TANH or RNN_RELU) is the module's attribute rnn_type; without a module,
// the `rnn_type` of the configuration file, if there is one; otherwise it follows from the shapes,
// which cannot tell RNN_TANH from RNN_RELU. Errors: those of LoadRecurrent;
// KINGLET_INVALID_CHECKPOINT for an unknown rnn_type, or none where the shapes are not enough.
Result<LoadedModel> LoadPytorchExamples(const FamilyInput& input) {
  RecurrentNames names;
  names.network = "a " + std::string(kPytorchExamples.name) + " network";
  names.to_tie = "config.yaml next to it, or --config, with tied: true";
  KINGLET_ASSIGN_OR_RETURN(names.cell, CellOfModule(input));
  KINGLET_RETURN_IF_ERROR(ReadConfiguration(input, names));
  names.layers = TorchLayers("rnn.", input.weights);
  if (!names.cell) {
    const auto weight = std::find_if(
        input.weights.begin(), input.weights.end(),
        [](const CheckpointTensor& tensor) { return tensor.name == "rnn.weight_hh_l0"; });
    if (weight != input.weights.end() && weight->shape.size() == 2 &&
        weight->shape[0] == weight->shape[1]) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", input.checkpoint,
          "a pickled module, or rnn_type RNN_TANH or RNN_RELU in config.yaml next to it or in "
          "a --config file",
          "the tensors of a plain RNN, which do not tell its function");
    }
  }
  return LoadRecurrent(names, input.weights, input.report);
}

}  // namespace

constexpr Family kPytorchExamples = {
    .name = "pytorch-examples",
    .marks = "encoder.weight|decoder.weight rnn.weight_hh_l0",
    .load = LoadPytorchExamples,
    .options = PytorchExamplesOptions,
    .modules = PytorchExamplesModules,
    .word_order = WordOrder::kFirstAppearance,
};

}  // namespace kinglet
