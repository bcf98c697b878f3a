// The recurrent models of the family `opennmt`: LSTM or GRU encoders of one direction or both, and
// a decoder with global attention (Luong et al. 2015; Bahdanau et al. 2015), input feeding, and a
// full softmax.
// Framework: OpenNMT-py 1.0, encoder_type rnn and brnn. Files as for opennmt.h.
// Peculiarities:
//   - sizes follow from the tensors' shapes, not from the options
//   - the output of attention has a tanh, and no bias, unless its score is an mlp
//   - a bridge of several layers mixed the sentences of a batch with each other in training; a
//     stream is a batch of one
//   - tables with equal values are stored once
#ifndef KINGLET_CONVERTERS_FAMILIES_OPENNMT_RECURRENT_H_
#define KINGLET_CONVERTERS_FAMILIES_OPENNMT_RECURRENT_H_

#include "converters/families/families.h"
#include "converters/families/opennmt_settings.h"
#include "converters/network/network.h"

namespace kinglet {

// Tokens of the longest source without FamilyInput::memory_length: the framework has no limit.
inline constexpr uint32_t kRecurrentSourceWindow = 1024;

// A file may store tables that the settings tie once, under any of their names.
void ShareOpenNmtTables(const OpenNmtSettings& settings, Network& network);

// With FamilyInput::memory_length, a source may have one token more than that. REQUIRES:
// settings.recurrent. Errors: KINGLET_INVALID_CHECKPOINT.
Result<LoadedModel> LoadOpenNmtRecurrent(OpenNmtSettings settings, const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_OPENNMT_RECURRENT_H_
