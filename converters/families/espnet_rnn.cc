// The family `espnet-rnn-lm`: an embedding, one nn.LSTM, nn.GRU or nn.RNN of several layers, and a
// softmax, perhaps tied.
// Framework: ESPnet 2, lm: seq_rnn (SequentialRNNLM). Files: Nepoch.pth and
// valid.*.ave_Kbest.pth, with config.yaml next to them. Peculiarities: averaging unties tables,
// whose values stay equal; a sentence begins and ends with <sos/eos>, the last token.
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/espnet_config.h"
#include "converters/families/families.h"
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

std::span<const OptionTable> EspnetRnnOptions() {
  static const std::array kBoth = {kEspnetRnnOptions, EspnetTaskOptions()};
  return kBoth;
}

// "rnn_type" and "nlayers" of lm_conf describe the layers; widths follow from the shapes. Errors:
// those of ReadEspnetConfig, LoadRecurrent and SetEspnetTokens.
Result<LoadedModel> LoadEspnetRnn(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const EspnetConfig config,
                           ReadEspnetConfig(input, "seq_rnn", kEspnetRnnOptions));
  RecurrentNames names;
  names.network = "an " + std::string(kEspnetRnn.name) + " network";
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
  names.to_tie = "tie_weights: true in lm_conf of " + names.configuration;
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights, input.report));
  KINGLET_RETURN_IF_ERROR(SetEspnetTokens(config, model));
  return model;
}

}  // namespace

constexpr Family kEspnetRnn = {
    .name = "espnet-rnn-lm",
    .marks = "lm.encoder.weight|lm.decoder.weight lm.rnn.*",
    .load = LoadEspnetRnn,
    .options = EspnetRnnOptions,
};

}  // namespace kinglet
