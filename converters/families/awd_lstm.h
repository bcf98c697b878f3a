// AWD-LSTM (Merity et al. 2017, "Regularizing and Optimizing LSTM Language Models"; training code
// salesforce/awd-lstm-lm), with LSTM, GRU or QRNN layers, from [model, criterion, optimizer], a
// whole model or its state dict, with its peculiarities:
//   - weight drop keeps the trained weight under <name>_raw; what lies under <name> is a leftover
//   - over 75,000 words the softmax is split and its tails' vectors are the criterion's, in reverse
//     order of the tails
//   - a QRNN layer has one weight for the token and, in the first layer, the one before
//   - its neural cache starts when more than its capacity was seen
#ifndef KINGLET_CONVERTERS_FAMILIES_AWD_LSTM_H_
#define KINGLET_CONVERTERS_FAMILIES_AWD_LSTM_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kAwdLstmFamily = "awd-lstm";

bool LooksLikeAwdLstm(std::span<const SourceTensor> weights);

// Errors: as LoadRecurrent, KINGLET_INVALID_CHECKPOINT for splits that are no words, and
// KINGLET_UNSUPPORTED for QRNN layers with zoneout or without an output gate.
Result<LoadedModel> LoadAwdLstm(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_AWD_LSTM_H_
