// pranavajitnair/DeFINE-AWD-LSTM: an AWD-LSTM whose input is a DeFINE unit (Mehta et al. 2020) over
// an adaptive Map, as a state dict, with its peculiarities:
//   - the unit's output for every word becomes the embedding's table; the unit itself is not kept
//   - the output layer shares Map's tables and the projections of all bands but the first, the
//     latter transposed; words have no biases
//   - one softmax over all words: the logit of a band's class is added to those of its words, and
//     the classes' own logits take no part (get_logits in its embeddings.py)
#ifndef KINGLET_CONVERTERS_FAMILIES_DEFINE_AWD_LSTM_H_
#define KINGLET_CONVERTERS_FAMILIES_DEFINE_AWD_LSTM_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kDefineAwdLstmFamily = "define-awd-lstm";

bool LooksLikeDefineAwdLstm(std::span<const SourceTensor> weights);

// Sizes, groups and depths are read off the shapes. Errors: KINGLET_INVALID_CHECKPOINT for missing,
// unused and mis-shaped tensors (all in one line), a last layer that is not as wide as Map, and
// values that are not finite; those of DefineTable.
Result<LoadedModel> LoadDefineAwdLstm(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_DEFINE_AWD_LSTM_H_
