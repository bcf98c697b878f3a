// The family `awd-lstm`: AWD-LSTM language models (Merity et al. 2017, "Regularizing and Optimizing
// LSTM Language Models") of LSTM, GRU or QRNN layers.
// Framework: salesforce/awd-lstm-lm. Files: model.pt, a pickled list [model, criterion, optimizer];
// also a pickled model or its state dict.
// Peculiarities:
//   - weight drop keeps the trained weight as <name>_raw; the tensor <name> is a dropped-out copy
//   - over 75,000 words the softmax is split (splitcross.py); the criterion has the cluster rows
//     ("tail vectors"), in reverse order of the tails
//   - a QRNN layer has one weight, for the token and, in the first layer, also the previous one
//   - the neural cache counts only after more pairs than its capacity
#ifndef KINGLET_CONVERTERS_FAMILIES_AWD_LSTM_H_
#define KINGLET_CONVERTERS_FAMILIES_AWD_LSTM_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/pickled_modules.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kAwdLstmFamily = "awd-lstm";

bool LooksLikeAwdLstm(std::span<const CheckpointTensor> weights);

// The pickled network and its criterion.
const PickledNetwork& AwdLstmModules();
std::span<const OptionTable> AwdLstmOptions();

// Errors: those of LoadRecurrent; KINGLET_INVALID_CHECKPOINT for a split that is not a word;
// KINGLET_UNSUPPORTED for QRNN layers with zoneout or without an output gate.
Result<LoadedModel> LoadAwdLstm(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_AWD_LSTM_H_
