#include "converters/families/icefall_rnn.h"

#include <string>
#include <utility>

#include "converters/checkpoints/pickle.h"
#include "converters/families/pickled_options.h"
#include "converters/families/recurrent_model.h"
#include "converters/families/token_list.h"

namespace kinglet {
namespace {

constexpr int64_t kIcefallSentence = 1;
constexpr const char* kIcefallTies = "tie_weights";

constexpr OptionTable kIcefallRnnOptions = {
    "the checkpoint's entries",
    "model sos_id eos_id vocab_size embedding_dim hidden_dim num_layers tie_weights",
    {},
    kIcefallIgnored,
    {},
    "sos_id eos_id vocab_size embedding_dim hidden_dim num_layers tie_weights"};

const PickleNode* StatedIn(const FamilyInput& input, std::string_view name) {
  return input.root == nullptr ? nullptr : input.root->Find(name);
}

}  // namespace

Status CheckIcefallOptions(const OptionTable& table, const FamilyInput& input) {
  if (StatedIn(input, "model") == nullptr) return {};
  KINGLET_RETURN_IF_ERROR(
      CheckOptions(table, input.checkpoint, "", PickledOptions(*input.root), input.ignored));
  for (const std::string_view name : OptionNames(table.honoured)) {
    const PickleNode* stated = StatedIn(input, name);
    if (stated == nullptr || name == "model") continue;
    const bool flag = name == kIcefallTies;
    if (flag ? stated->As<bool>() != nullptr : stated->Integer().has_value()) continue;
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, input.checkpoint, std::string(name),
                           flag ? "True or False" : "an integer",
                           OptionText(*stated) + " (save the options as icefall does)");
  }
  return {};
}

std::optional<int64_t> IcefallInteger(const FamilyInput& input, std::string_view name) {
  const PickleNode* node = StatedIn(input, name);
  return node == nullptr ? std::nullopt : node->Integer();
}

bool IcefallTies(const FamilyInput& input) {
  const PickleNode* node = StatedIn(input, kIcefallTies);
  const bool* ties = node == nullptr ? nullptr : node->As<bool>();
  return ties != nullptr && *ties;
}

// A negative id becomes one that no vocabulary has.
SentenceTokens IcefallSentenceTokens(const FamilyInput& input) {
  return {static_cast<uint64_t>(IcefallInteger(input, "sos_id").value_or(kIcefallSentence)),
          static_cast<uint64_t>(IcefallInteger(input, "eos_id").value_or(kIcefallSentence))};
}

namespace {

std::span<const OptionTable> IcefallRnnOptions() { return {&kIcefallRnnOptions, 1}; }

// Errors: those of LoadRecurrent, SetSentenceTokens and FindTokenList.
Result<LoadedModel> LoadIcefallRnn(const FamilyInput& input) {
  RecurrentNames names;
  names.network = "an " + std::string(kIcefallRnn.name) + " network";
  names.embedding = "input_embedding.weight";
  names.softmax_weight = "output_linear.weight";
  names.softmax_bias = "output_linear.bias";
  names.layers = TorchLayers("rnn.", input.weights);
  KINGLET_RETURN_IF_ERROR(CheckIcefallOptions(kIcefallRnnOptions, input));
  names.configuration = input.checkpoint;
  for (const auto& [name, what] : {std::pair("vocab_size", StatedSize::kWords),
                                   {"embedding_dim", StatedSize::kInputs},
                                   {"hidden_dim", StatedSize::kUnits},
                                   {"num_layers", StatedSize::kLayers}}) {
    if (const auto size = IcefallInteger(input, name)) names.stated.push_back({name, *size, what});
  }
  if (IcefallTies(input)) names.tied_by = kIcefallTies;
  names.to_tie = kToTieIcefall;
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights, input.report));
  ModelDescription& description = model.draft.description;
  KINGLET_RETURN_IF_ERROR(SetSentenceTokens(IcefallSentenceTokens(input),
                                            input.checkpoint + ", sos_id and eos_id", description));
  KINGLET_ASSIGN_OR_RETURN(model.draft.vocabulary,
                           FindTokenList(input.checkpoint, description.vocabulary_size));
  return model;
}

}  // namespace

constexpr Family kIcefallRnn = {
    .name = "icefall-rnn-lm",
    .marks = "input_embedding.weight|output_linear.weight rnn.* output_linear.*",
    .load = LoadIcefallRnn,
    .options = IcefallRnnOptions,
};

}  // namespace kinglet
