// The family `speechbrain-rnn-lm`: an embedding, recurrent layers, dense layers with layer
// normalisation, and a softmax.
// Framework: SpeechBrain, lobes.models.RNNLM. Files: model.ckpt of a training, lm.ckpt as
// published, with hyperparams.yaml in the same folder or up to two folders up. Peculiarities: the
// names of dense layers have no number, _0, _1, ..; "bos_index" and "eos_index" begin and end a
// sentence; tokenizer.ckpt is a SentencePiece model.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/families.h"
#include "converters/families/recurrent_model.h"
#include "converters/families/speechbrain_config.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr OptionTable kSpeechbrainRnnOptions = {
    "arguments of `RNNLM`",
    "output_neurons embedding_dim activation rnn_class rnn_layers rnn_neurons dnn_blocks "
    "dnn_neurons",
    {},
    "dropout rnn_re_init return_hidden",
    {},
    "output_neurons embedding_dim activation rnn_class rnn_layers rnn_neurons dnn_blocks "
    "dnn_neurons"};

Result<RecurrentCell> SpeechbrainCell(const SpeechbrainConfig& config) {
  static constexpr std::array<std::string_view, 1> kPackages = {"speechbrain.nnet.RNN"};
  KINGLET_ASSIGN_OR_RETURN(const std::string name,
                           config.ClassName("rnn_class", "LSTM", kPackages));
  if (name == "LSTM") return RecurrentCell::kLstm;
  if (name == "GRU") return RecurrentCell::kGru;
  if (name == "RNN") return RecurrentCell::kRelu;  // its only function here
  return config.RefuseArgument("rnn_class", "LSTM, GRU or RNN", QuotedName(name));
}

std::span<const OptionTable> SpeechbrainRnnOptions() { return {&kSpeechbrainRnnOptions, 1}; }

// Errors: those of ReadSpeechbrainConfig, LoadRecurrent and SetSpeechbrainTokens;
// KINGLET_INVALID_CHECKPOINT for arguments that make another network.
Result<LoadedModel> LoadSpeechbrainRnn(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(
      const SpeechbrainConfig config,
      ReadSpeechbrainConfig(input, "speechbrain.lobes.models.RNNLM.RNNLM", kSpeechbrainRnnOptions));
  RecurrentNames names;
  names.network = "a " + std::string(kSpeechbrainRnn.name) + " network with these arguments";
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
  names.configuration = config.arguments.path();
  const std::pair<const char*, StatedSize::What> sizes[] = {
      {"output_neurons", StatedSize::kWords},
      {"embedding_dim", StatedSize::kInputs},
      {"rnn_layers", StatedSize::kLayers},
      {"rnn_neurons", StatedSize::kUnits},
      {"dnn_neurons", StatedSize::kDenseUnits}};
  for (const auto& [name, what] : sizes) {
    if (!config.arguments.Has(name)) continue;
    KINGLET_ASSIGN_OR_RETURN(const int64_t size, config.arguments.Integer(name));
    names.stated.push_back({name, size, what});
  }
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights, input.report));
  KINGLET_RETURN_IF_ERROR(SetSpeechbrainTokens(input, config, model));
  return model;
}

}  // namespace

constexpr Family kSpeechbrainRnn = {
    .name = "speechbrain-rnn-lm",
    .marks = "embedding.Embedding.weight rnn.rnn.* out.w.weight",
    .load = LoadSpeechbrainRnn,
    .options = SpeechbrainRnnOptions,
};

}  // namespace kinglet
