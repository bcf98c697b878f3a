// The family `pytorch-examples`: recurrent language models of an embedding, one nn.LSTM, nn.GRU or
// nn.RNN of several layers, and a softmax.
// Framework: pytorch/examples, word_language_model. Files: model.pt, the pickled module; also its
// state dict. Peculiarities: words are numbered in order of first appearance; encoder and decoder
// may be tied.
#ifndef KINGLET_CONVERTERS_FAMILIES_PYTORCH_EXAMPLES_H_
#define KINGLET_CONVERTERS_FAMILIES_PYTORCH_EXAMPLES_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/pickled_modules.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kPytorchExamplesFamily = "pytorch-examples";

bool LooksLikePytorchExamples(std::span<const CheckpointTensor> weights);

// The pickled network.
const PickledNetwork& PytorchExamplesModules();
std::span<const OptionTable> PytorchExamplesOptions();

// The cell (LSTM, GRU, RNN_TANH or RNN_RELU) is the module's attribute rnn_type; without a module,
// the `rnn_type` of the configuration file, if there is one; otherwise it follows from the shapes,
// which cannot tell RNN_TANH from RNN_RELU. Errors: those of LoadRecurrent;
// KINGLET_INVALID_CHECKPOINT for an unknown rnn_type, or none where the shapes are not enough.
Result<LoadedModel> LoadPytorchExamples(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_PYTORCH_EXAMPLES_H_
