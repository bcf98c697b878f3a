// pytorch/examples word_language_model: an embedding, one nn.LSTM, nn.GRU or nn.RNN of several
// layers and a softmax, saved as a whole module (or as its state dict). Ids are in order of first
// appearance; encoder and decoder may be tied.
#ifndef KINGLET_CONVERTERS_FAMILIES_PYTORCH_EXAMPLES_H_
#define KINGLET_CONVERTERS_FAMILIES_PYTORCH_EXAMPLES_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kPytorchExamplesFamily = "pytorch-examples";

bool LooksLikePytorchExamples(std::span<const SourceTensor> weights);

// The cell is the whole module's attribute rnn_type; without a module, `rnn_type` of the
// configuration file (LSTM, GRU, RNN_TANH or RNN_RELU), if the user gives one; without either, what
// the shapes say, which cannot tell RNN_TANH from RNN_RELU. Errors: as LoadRecurrent, and
// KINGLET_INVALID_CHECKPOINT for an rnn_type that is none of these or cannot be known.
Result<LoadedModel> LoadPytorchExamples(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_PYTORCH_EXAMPLES_H_
