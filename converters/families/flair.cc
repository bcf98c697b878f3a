// The family `flair`: character language models of one direction (Akbik et al. 2018, "Contextual
// String Embeddings for Sequence Labeling"), LSTM or GRU, with a projection before the softmax or
// without.
// Framework: flairNLP/flair, LanguageModel. Files: best-lm.pt, .. of save() and save_checkpoint(),
// a dict with the state dict, the settings and the dictionary; also the pickled LanguageModel,
// whose state is that dict.
// Peculiarities:
//   - tensors are named as those of pytorch-examples; the entry is_forward_lm tells them apart
//   - tokens are characters, the end of a line among them; an unknown one is token 0, <unk>
//   - nothing stands before a text, so its first character has no probability
//   - a model with is_forward_lm False reads texts from their last character to their first
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/families.h"
#include "converters/families/pickled_options.h"
#include "converters/families/recurrent_model.h"
#include "converters/texts/pickled_vocabulary.h"

namespace kinglet {
namespace {

constexpr const char* kUnknownCharacter = "<unk>";

constexpr std::array<FixedOption, 1> kFixedOfFlair = {{{"has_decoder", "True"}}};
constexpr OptionTable kFlairOptions = {"the checkpoint's entries",
                                       "dictionary document_delimiter is_forward_lm state_dict "
                                       "hidden_size nlayers embedding_size nout",
                                       kFixedOfFlair,
                                       "dropout epoch loss optimizer_state_dict split",
                                       "recurrent_type",
                                       "is_forward_lm hidden_size nlayers embedding_size"};

Status RefuseEntry(const FamilyInput& input, const std::string& entry, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, input.checkpoint, entry, expected,
                         found + " (save the model again with flair's LanguageModel.save)");
}

// The sizes that the entries state; None is the projection that a network lacks.
Status ReadSizes(const FamilyInput& input, RecurrentNames& names) {
  names.configuration = input.checkpoint;
  for (const auto& [name, what] : {std::pair("hidden_size", StatedSize::kUnits),
                                   {"nlayers", StatedSize::kLayers},
                                   {"embedding_size", StatedSize::kInputs},
                                   {"nout", StatedSize::kDenseUnits}}) {
    const NodeRef node = PickledOption(*input.root, name);
    if (node == nullptr || node->As<PickleNone>() != nullptr) continue;
    const std::optional<int64_t> size = node->Integer();
    if (!size) return RefuseEntry(input, name, "an integer", OptionText(*node));
    names.stated.push_back({name, *size, what});
    if (what == StatedSize::kDenseUnits) names.dense = {{"proj.weight", "proj.bias", "", ""}};
  }
  return {};
}

// The dictionary's characters by id. Its two tables must agree, as one encodes texts and the other
// decodes tokens.
Result<std::vector<std::string>> ReadCharacters(const FamilyInput& input) {
  const NodeRef dictionary = PickledOption(*input.root, "dictionary");
  if (dictionary == nullptr) return RefuseEntry(input, "dictionary", "the model's", "none");
  KINGLET_ASSIGN_OR_RETURN(PickledVocabulary characters,
                           WordsOfPickle(input.checkpoint, *dictionary));
  std::vector<std::string>& words = characters.words;
  const NodeRef ids = PickledOption(*dictionary, "item2idx");
  const auto* dict = ids == nullptr ? nullptr : ids->As<PickleDict>();
  bool agrees = dict != nullptr && dict->items.size() == words.size();
  for (size_t i = 0; agrees && i < words.size(); ++i) {
    const auto& [item, id] = dict->items[i];
    const auto* bytes = item->As<PickleBytes>();
    const auto at = static_cast<uint64_t>(id->Integer().value_or(-1));
    agrees = bytes != nullptr && at < words.size() && words[at] == bytes->value;
  }
  if (!agrees) {
    return RefuseEntry(input, "dictionary", "equal ids in item2idx and idx2item", "others");
  }
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] != kUnknownCharacter) continue;
    return RefuseEntry(input, "dictionary",
                       "<unk> as item 0, which stands for an unknown character",
                       "item " + std::to_string(i));
  }
  return std::move(words);
}

// Errors: those of CheckOptions and LoadRecurrent; KINGLET_INVALID_CHECKPOINT for entries of
// another type and for a dictionary that is not the network's.
Result<LoadedModel> LoadFlair(const FamilyInput& input) {
  RecurrentNames names;
  names.network = "a " + std::string(kFlair.name) + " network";
  names.layers = TorchLayers("rnn.", input.weights);
  const bool stated = input.root != nullptr && PickledOption(*input.root, kFlair.entry) != nullptr;
  if (stated) {
    KINGLET_RETURN_IF_ERROR(CheckOptions(kFlairOptions, input.checkpoint, "",
                                         PickledOptions(*input.root), input.ignored));
    KINGLET_RETURN_IF_ERROR(ReadSizes(input, names));
  }
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights, input.report));
  if (!stated) return RefuseEntry(input, std::string(kFlair.entry), "True or False", "none");
  const NodeRef forward = PickledOption(*input.root, kFlair.entry);
  if (forward->As<bool>() == nullptr) {
    return RefuseEntry(input, std::string(kFlair.entry), "True or False", OptionText(*forward));
  }
  ModelDraft& draft = model.draft;
  KINGLET_ASSIGN_OR_RETURN(draft.vocabulary, ReadCharacters(input));
  if (draft.vocabulary.size() != draft.description.vocabulary_size) {
    return RefuseEntry(
        input, "dictionary",
        std::to_string(draft.description.vocabulary_size) + " characters, as the tensors have",
        std::to_string(draft.vocabulary.size()));
  }
  const NodeRef delimiter = PickledOption(*input.root, "document_delimiter");
  if (delimiter != nullptr && OptionText(*delimiter) != OptionText({std::string("\n")})) {
    model.notes.push_back("texts of embed --spans begin with a newline, in flair with " +
                          OptionText(*delimiter));
  }
  const bool reads_backward = !*forward->As<bool>();
  draft.tokenizer = {false, WordRule{WordRule::Rule::kCharacters}, reads_backward};
  return model;
}

std::span<const OptionTable> FlairOptions() { return {&kFlairOptions, 1}; }

}  // namespace

constexpr Family kFlair = {
    .name = "flair",
    .marks = "encoder.weight|decoder.weight rnn.weight_hh_l0",
    .entry = "is_forward_lm",
    .load = LoadFlair,
    .options = FlairOptions,
};

}  // namespace kinglet
