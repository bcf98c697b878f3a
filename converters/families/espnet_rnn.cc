#include "converters/families/espnet_rnn.h"

#include <array>
#include <string>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/families/espnet_config.h"
#include "converters/families/recurrent_model.h"

namespace kinglet {
namespace {

constexpr OptionTable kEspnetRnnOptions = {"`lm_conf`", "unit nhid nlayers tie_weights rnn_type",
                                           {},          "dropout_rate ignore_id",
                                           {},          "unit nlayers tie_weights rnn_type"};

Result<RecurrentCell> EspnetCell(const EspnetConfig& config) {
  struct Known {
    std::string_view name;
    RecurrentCell cell;
  };
  static constexpr std::array<Known, 4> kKnown = {{{"lstm", RecurrentCell::kLstm},
                                                   {"gru", RecurrentCell::kGru},
                                                   {"rnn_tanh", RecurrentCell::kTanh},
                                                   {"rnn_relu", RecurrentCell::kRelu}}};
  KINGLET_ASSIGN_OR_RETURN(const std::string type, config.Text("rnn_type", "lstm"));
  for (const Known& known : kKnown) {
    if (known.name == type) return known.cell;
  }
  return config.RefuseOption("rnn_type", "lstm, gru, rnn_tanh or rnn_relu", QuotedName(type));
}

}  // namespace

std::span<const OptionTable> EspnetRnnOptions() {
  static const std::array kTables = {kEspnetRnnOptions, EspnetTaskOptions()};
  return kTables;
}

bool LooksLikeEspnetRnn(std::span<const CheckpointTensor> weights) {
  return HasTensor(weights, "lm.encoder.weight") && HasTensorUnder(weights, "lm.rnn.");
}

Result<LoadedModel> LoadEspnetRnn(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const EspnetConfig config,
                           ReadEspnetConfig(input, "seq_rnn", kEspnetRnnOptions));
  RecurrentNames names;
  names.network = "an " + std::string(kEspnetRnnFamily) + " network";
  names.embedding = "lm.encoder.weight";
  names.softmax_weight = "lm.decoder.weight";
  names.softmax_bias = "lm.decoder.bias";
  names.layers = TorchLayers("lm.rnn.", input.weights);
  KINGLET_ASSIGN_OR_RETURN(names.cell, EspnetCell(config));
  KINGLET_ASSIGN_OR_RETURN(const int64_t layers, config.Integer("nlayers", 2));
  names.configuration = config.lm.path();
  names.stated.push_back({"lm_conf, nlayers", layers, StatedSize::kLayers});
  for (const auto& [name, what] :
       {std::pair("unit", StatedSize::kInputs), std::pair("nhid", StatedSize::kUnits)}) {
    if (!config.lm.Has(name)) continue;
    KINGLET_ASSIGN_OR_RETURN(const int64_t size, config.lm.Integer(name));
    names.stated.push_back({std::string("lm_conf, ") + name, size, what});
  }
  if (config.lm.Has("tie_weights")) {
    KINGLET_ASSIGN_OR_RETURN(const bool tied, config.lm.Boolean("tie_weights"));
    if (tied) names.tied_by = "tie_weights";
  }
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights));
  KINGLET_RETURN_IF_ERROR(SetEspnetTokens(config, model));
  return model;
}

}  // namespace kinglet
