#include "converters/families/speechbrain_rnn.h"

#include <cstdint>
#include <string>

#include "converters/families/recurrent_model.h"
#include "converters/families/speechbrain_config.h"
#include "converters/sources/quoted.h"
#include "format/limits.h"

namespace kinglet {
namespace {

Result<RecurrentCell> SpeechbrainCell(const SpeechbrainConfig& config) {
  KINGLET_ASSIGN_OR_RETURN(const std::string name, config.ClassName("rnn_class", "LSTM"));
  if (name == "LSTM") return RecurrentCell::kLstm;
  if (name == "GRU") return RecurrentCell::kGru;
  if (name == "RNN") return RecurrentCell::kRelu;  // its only function here
  return config.RefuseArgument("rnn_class", "LSTM, GRU or RNN", QuotedName(name));
}

}  // namespace

bool LooksLikeSpeechbrainRnn(std::span<const SourceTensor> weights) {
  return HasTensor(weights, "embedding.Embedding.weight") && HasTensorUnder(weights, "rnn.rnn.") &&
         HasTensor(weights, "out.w.weight");
}

Result<LoadedModel> LoadSpeechbrainRnn(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const SpeechbrainConfig config,
                           ReadSpeechbrainConfig(input, "speechbrain.lobes.models.RNNLM.RNNLM"));
  RecurrentNames names;
  names.network = "a " + std::string(kSpeechbrainRnnFamily) + " network with these arguments";
  names.embedding = "embedding.Embedding.weight";
  names.softmax_weight = "out.w.weight";
  names.softmax_bias = "out.w.bias";
  names.layers = TorchLayers("rnn.rnn.", input.weights);
  KINGLET_ASSIGN_OR_RETURN(names.cell, SpeechbrainCell(config));
  KINGLET_ASSIGN_OR_RETURN(const Activation activation, config.ActivationOf("LeakyReLU"));
  KINGLET_ASSIGN_OR_RETURN(const int64_t blocks, config.Integer("dnn_blocks", 1));
  if (blocks < 0 || static_cast<uint64_t>(blocks) > kMaxLayers) {
    return config.RefuseArgument("dnn_blocks", "at most " + std::to_string(kMaxLayers),
                                 std::to_string(blocks));
  }
  for (int64_t i = 0; i < blocks; ++i) {
    const std::string number = i == 0 ? "" : "_" + std::to_string(i - 1);
    const std::string linear = "dnn.linear" + number + ".w.", norm = "dnn.norm" + number + ".norm.";
    names.dense.push_back(
        {linear + "weight", linear + "bias", norm + "weight", norm + "bias", activation});
  }
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights));
  KINGLET_RETURN_IF_ERROR(SetSpeechbrainTokens(input, config, model));
  return model;
}

}  // namespace kinglet
