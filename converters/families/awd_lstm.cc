// The families `awd-lstm` and `fastai`: AWD-LSTM language models (Merity et al. 2017, "Regularizing
// and Optimizing LSTM Language Models") of LSTM, GRU or QRNN layers.
// Frameworks: salesforce/awd-lstm-lm. Files: model.pt, a pickled list [model, criterion,
// optimizer]; also a pickled model or its state dict. fastai 0.7 to 2 (ULMFiT, Howard and Ruder
// 2018). Files: Learner.save's .pth, a state dict, alone or with the optimizer's state.
// Peculiarities:
//   - weight drop keeps the trained weight as <name>_raw; the tensor <name> is a dropped-out copy
//   - over 75,000 words the softmax is split (splitcross.py); the criterion has the cluster rows
//     ("tail vectors"), in reverse order of the tails
//   - a QRNN layer has one weight, for the token and, in the first layer, also the previous one
//   - the neural cache counts only after more pairs than its capacity
//   - fastai saves the embedding twice, under the name of its dropout too
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/derived_weights.h"
#include "converters/checkpoints/saved_module.h"
#include "converters/families/families.h"
#include "converters/families/pickled_modules.h"
#include "converters/families/recurrent_model.h"

namespace kinglet {
namespace {

// The framework splits the softmax of larger vocabularies.
constexpr uint64_t kMaxWordsUnsplit = 75'000;

// A variational dropout drops weights in evaluation too.
constexpr std::array<FixedOption, 1> kFixedOfWeightDrop = {{{"variational", "False"}}};
// Zoneout scales gates in evaluation; a layer that does not keep the previous input takes zeros at
// the start of each part of a text.
constexpr std::array<FixedOption, 3> kFixedOfQrnn = {
    {{"zoneout", "0"}, {"output_gate", "True"}, {"save_prev_x", "True"}}};
constexpr std::array<PickledClass, 5> kAwdClasses = {{
    {"RNNModel",
     {"`RNNModel`",
      "",
      {},
      "dropout dropoute dropouth dropouti wdrop",
      "rnn_type ninp nhid nlayers ntoken tie_weights"}},
    {"LockedDropout", {"`LockedDropout`", "", {}, "dropout"}},
    {"WeightDrop", {"`WeightDrop`", "", kFixedOfWeightDrop, "dropout", "weights"}},
    {"QRNNLayer",
     {"`QRNNLayer`", "", kFixedOfQrnn, "prevX use_cuda", "window input_size hidden_size"}},
    {"SplitCrossEntropyLoss",
     {"`SplitCrossEntropyLoss`", "splits", {}, "stats verbose", "hidden_size nsplits"}},
}};
constexpr PickledPlace kAwdPlaces[] = {
    {"", "RNNModel"},
    {"lockdrop", "LockedDropout"},
    {"idrop", "Dropout"},
    {"hdrop", "Dropout"},
    {"drop", "Dropout"},
    {"encoder", "Embedding"},
    {"rnns", "ModuleList"},
    {"rnns.*", "WeightDrop LSTM GRU QRNNLayer"},
    {"rnns.*.module", "LSTM GRU"},
    {"rnns.*.linear", "WeightDrop Linear"},
    {"rnns.*.linear.module", "Linear"},
    {"decoder", "Linear"},
};
constexpr PickledPlace kAwdCriterion[] = {{"", "SplitCrossEntropyLoss CrossEntropyLoss"}};

class Names {
 public:
  explicit Names(std::span<const CheckpointTensor> weights) : weights_(weights) {}

  bool Has(const std::string& name) const { return HasTensor(weights_, name); }
  bool HasPrefix(const std::string& prefix) const { return HasTensorUnder(weights_, prefix); }
  // The prefix of the module inside a weight drop, or `prefix` if there is no weight drop.
  std::string Inside(const std::string& prefix) const {
    return HasPrefix(prefix + "module.") ? prefix + "module." : prefix;
  }
  // The name of the trained weight. With weight drop, `name` itself is a leftover.
  std::string Trained(const std::string& name, std::vector<std::string>& leftovers) const {
    std::string trained =
        TrainedName(name, [this](const std::string& other) { return Has(other); });
    if (trained != name) leftovers.push_back(name);
    return trained;
  }

 private:
  std::span<const CheckpointTensor> weights_;
};

RecurrentLayerNames LayerNames(const Names& names, const std::string& prefix, bool qrnn) {
  RecurrentLayerNames layer;
  if (qrnn) {
    const std::string linear = names.Inside(prefix + "linear.");
    layer.input_weight = names.Trained(linear + "weight", layer.leftovers);
    layer.input_bias = linear + "bias";
    return layer;
  }
  const std::string module = names.Inside(prefix);
  layer.input_weight = names.Trained(module + "weight_ih_l0", layer.leftovers);
  layer.input_bias = module + "bias_ih_l0";
  layer.recurrent_weight = names.Trained(module + "weight_hh_l0", layer.leftovers);
  layer.recurrent_bias = module + "bias_hh_l0";
  return layer;
}

// The first words of the tails. The criterion's list also has 0 at the front and a number above all
// words at the end.
Result<std::vector<uint64_t>> SplitsOf(const FamilyInput& input) {
  std::vector<uint64_t> splits;
  const PickleNode* criterion = input.modules.criterion;
  const NodeRef node = criterion == nullptr ? nullptr : ModuleAttribute(*criterion, "splits");
  const auto* list = node == nullptr ? nullptr : node->As<PickleList>();
  if (list == nullptr) return splits;
  for (size_t i = 1; i + 1 < list->items.size(); ++i) {
    const std::optional<int64_t> split = list->items[i]->Integer();
    if (!split || *split <= 0) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, input.checkpoint,
                             "splits of the criterion", "words above 0",
                             split ? std::to_string(*split) : list->items[i]->Describe());
    }
    splits.push_back(static_cast<uint64_t>(*split));
  }
  return splits;
}

const PickledNetwork& AwdLstmModules() {
  static constexpr PickledNetwork kModules = {kAwdPlaces, kAwdCriterion, kAwdClasses};
  return kModules;
}

std::span<const OptionTable> AwdLstmOptions() {
  static const std::vector<OptionTable> kTables = ClassOptions(AwdLstmModules());
  return kTables;
}

// The layers of the list `rnns`; `qrnn`: where a QRNN is in each of its items.
RecurrentNames NamesOf(const Names& found, const std::string& rnns, const std::string& qrnn) {
  RecurrentNames names;
  names.ties = true;
  const bool is_qrnn = found.HasPrefix(rnns + "0." + qrnn + "linear.");
  if (is_qrnn) names.cell = RecurrentCell::kQrnn;
  std::string prefix = rnns + "0.";
  do {
    names.layers.push_back(LayerNames(found, prefix + (is_qrnn ? qrnn : ""), is_qrnn));
    prefix = rnns + std::to_string(names.layers.size()) + ".";
  } while (found.HasPrefix(prefix));
  return names;
}

// Errors: those of LoadRecurrent; KINGLET_INVALID_CHECKPOINT for a split that is not a word;
// KINGLET_UNSUPPORTED for QRNN layers with zoneout or without an output gate.
Result<LoadedModel> LoadAwdLstm(const FamilyInput& input) {
  RecurrentNames names = NamesOf(Names(input.weights), "rnns.", "");
  names.network = "an " + std::string(kAwdLstm.name) + " network";
  KINGLET_ASSIGN_OR_RETURN(names.splits, SplitsOf(input));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights, input.report));
  const uint32_t words = model.draft.description.vocabulary_size;
  if (input.modules.criterion == nullptr && words > kMaxWordsUnsplit) {
    model.notes.push_back("the checkpoint has no criterion: the softmax over " +
                          std::to_string(words) + " words is assumed to be unsplit");
  }
  return model;
}

// Errors: those of LoadRecurrent.
Result<LoadedModel> LoadFastai(const FamilyInput& input) {
  const Names found(input.weights);
  RecurrentNames names = NamesOf(found, "0.rnns.", "layers.0.");
  names.network = "a " + std::string(kFastai.name) + " network";
  names.embedding = "0.encoder.weight";
  names.embedding_copy = found.Has("0.encoder_with_dropout.embed.weight")
                             ? "0.encoder_with_dropout.embed.weight"  // fastai 0.7
                             : "0.encoder_dp.emb.weight";
  names.softmax_weight = "1.decoder.weight";
  names.softmax_bias = "1.decoder.bias";
  return LoadRecurrent(names, input.weights, input.report);
}

}  // namespace

constexpr Family kAwdLstm = {
    .name = "awd-lstm",
    .marks = "encoder.weight|decoder.weight rnns.0.*",
    .load = LoadAwdLstm,
    .options = AwdLstmOptions,
    .modules = AwdLstmModules,
    .word_order = WordOrder::kFirstAppearance,
};

constexpr Family kFastai = {
    .name = "fastai",
    .marks = "0.encoder.weight|1.decoder.weight 0.rnns.0.*",
    .load = LoadFastai,
};

}  // namespace kinglet
