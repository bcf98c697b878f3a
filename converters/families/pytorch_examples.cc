#include "converters/families/pytorch_examples.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "converters/families/recurrent_model.h"
#include "converters/sources/checkpoint_path.h"
#include "converters/sources/config_file.h"
#include "converters/sources/quoted.h"
#include "converters/sources/saved_module.h"
#include "converters/sources/source_weights.h"

namespace kinglet {
namespace {

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

// None if neither a module nor a configuration names it.
Result<std::optional<RecurrentCell>> KnownCell(const FamilyInput& input) {
  if (const PickleNode* module = input.modules.network; module != nullptr) {
    std::optional<std::string> type = TextAttribute(*module, "rnn_type");
    const NodeRef rnn = Submodule(*module, "rnn");
    if (!type && rnn != nullptr) type = TextAttribute(*rnn, "mode");
    if (type) {
      KINGLET_ASSIGN_OR_RETURN(const RecurrentCell cell, CellOf(input.checkpoint, *type));
      return std::optional(cell);
    }
  }
  const std::string path = input.config.empty() ? ConfigBeside(input.checkpoint) : input.config;
  if (path.empty()) return std::optional<RecurrentCell>();
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(path));
  if (input.config.empty() && !file.Has("rnn_type")) return std::optional<RecurrentCell>();
  KINGLET_ASSIGN_OR_RETURN(const std::string type, file.Text("rnn_type"));
  KINGLET_ASSIGN_OR_RETURN(const RecurrentCell cell, CellOf(path, type));
  return std::optional(cell);
}

}  // namespace

bool LooksLikePytorchExamples(std::span<const SourceTensor> weights) {
  return HasTensor(weights, "encoder.weight") && HasTensor(weights, "rnn.weight_hh_l0");
}

Result<LoadedModel> LoadPytorchExamples(const FamilyInput& input) {
  RecurrentNames names;
  names.network = "a " + std::string(kPytorchExamplesFamily) + " network";
  KINGLET_ASSIGN_OR_RETURN(names.cell, KnownCell(input));
  names.layers = TorchLayers("rnn.", input.weights);
  if (!names.cell) {
    const auto weight =
        std::find_if(input.weights.begin(), input.weights.end(),
                     [](const SourceTensor& tensor) { return tensor.name == "rnn.weight_hh_l0"; });
    if (weight != input.weights.end() && weight->shape.size() == 2 &&
        weight->shape[0] == weight->shape[1]) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", input.checkpoint,
          "a whole module, or config.yaml beside it or another --config with rnn_type "
          "RNN_TANH or RNN_RELU",
          "the tensors of a plain RNN, which do not tell its function");
    }
  }
  return LoadRecurrent(names, input.weights);
}

}  // namespace kinglet
