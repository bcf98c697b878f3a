#include "converters/families/icefall_rnn.h"

#include <string>

#include "converters/families/recurrent_model.h"
#include "converters/families/token_list.h"
#include "converters/sources/pickle.h"

namespace kinglet {
namespace {

constexpr uint64_t kIcefallSentence = 1;

uint64_t IntegerIn(const PickleNode* root, const char* name, uint64_t otherwise) {
  const PickleNode* node = root == nullptr ? nullptr : root->Find(name);
  const auto* value = node == nullptr ? nullptr : node->As<int64_t>();
  // A negative number becomes one that no vocabulary has.
  return value == nullptr ? otherwise : static_cast<uint64_t>(*value);
}

}  // namespace

SentenceTokens IcefallSentenceTokens(const FamilyInput& input) {
  return {IntegerIn(input.root, "sos_id", kIcefallSentence),
          IntegerIn(input.root, "eos_id", kIcefallSentence)};
}

bool LooksLikeIcefallRnn(std::span<const SourceTensor> weights) {
  return HasTensor(weights, "input_embedding.weight") && HasTensorUnder(weights, "rnn.") &&
         HasTensor(weights, "output_linear.weight");
}

Result<LoadedModel> LoadIcefallRnn(const FamilyInput& input) {
  RecurrentNames names;
  names.network = "an " + std::string(kIcefallRnnFamily) + " network";
  names.embedding = "input_embedding.weight";
  names.softmax_weight = "output_linear.weight";
  names.softmax_bias = "output_linear.bias";
  names.layers = TorchLayers("rnn.", input.weights);
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights));
  ModelDescription& description = model.draft.description;
  KINGLET_RETURN_IF_ERROR(SetSentenceTokens(IcefallSentenceTokens(input),
                                            input.checkpoint + ", sos_id and eos_id", description));
  KINGLET_ASSIGN_OR_RETURN(model.draft.vocabulary,
                           FindTokenList(input.checkpoint, description.vocabulary_size));
  return model;
}

}  // namespace kinglet
