// The family `define-awd-lstm`: an AWD-LSTM whose input is a DeFINE unit (Mehta et al. 2020,
// "DeFINE: Deep Factorized Input Token Embeddings for Neural Sequence Modeling") on an adaptive Map
// layer. Framework: pranavajitnair/DeFINE-AWD-LSTM. Files: its state dict. Peculiarities:
//   - the unit's outputs for all words become the embedding's table, unless the user keeps the unit
//   - the output layer shares the Map layer's tables, and the projections of all bands but the
//     first, transposed; words have no biases
//   - there is one softmax over all words: the logit of a band's class is added to those of the
//     band's words, and the classes take no other part (get_logits in its embeddings.py)
#ifndef KINGLET_CONVERTERS_FAMILIES_DEFINE_AWD_LSTM_H_
#define KINGLET_CONVERTERS_FAMILIES_DEFINE_AWD_LSTM_H_

#include <span>
#include <string_view>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kDefineAwdLstmFamily = "define-awd-lstm";

bool LooksLikeDefineAwdLstm(std::span<const CheckpointTensor> weights);

// Sizes, groups and depths follow from the shapes. Errors: KINGLET_INVALID_CHECKPOINT for missing,
// unused and mis-shaped tensors (all in one message), for a last layer that is not as wide as the
// Map layer, and for values that are not finite; those of DefineTable.
Result<LoadedModel> LoadDefineAwdLstm(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_DEFINE_AWD_LSTM_H_
