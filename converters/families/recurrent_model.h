// What the recurrent families share: an embedding, recurrent layers and a softmax that may be split
// (Merity et al. 2017, "Regularizing and Optimizing LSTM Language Models", splitcross.py). A family
// says what the tensors are called.
#ifndef KINGLET_CONVERTERS_FAMILIES_RECURRENT_MODEL_H_
#define KINGLET_CONVERTERS_FAMILIES_RECURRENT_MODEL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/families/families.h"
#include "converters/families/recurrent_layers.h"
#include "converters/sources/source_weights.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

struct RecurrentNames {
  std::string network;  // "an awd-lstm network": for messages
  std::vector<RecurrentLayerNames> layers;
  // Of all layers. Without one, the rows of each recurrent weight tell LSTM from GRU.
  std::optional<RecurrentCell> cell;
  // The words at which tails begin, ascending. Rows of the tails' vectors are in reverse order.
  std::vector<uint64_t> splits;
};

// Tensors "encoder.weight", "decoder.weight", "decoder.bias", with splits "criterion.tail_vectors"
// and "criterion.tail_bias", and the layers'. Tables with equal values become one. Missing, unused
// and mis-shaped tensors are refused all together in one line; a value that is not finite by tensor
// and index. Errors: KINGLET_INVALID_CHECKPOINT.
Result<LoadedModel> LoadRecurrent(const RecurrentNames& names,
                                  std::span<const SourceTensor> weights);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_RECURRENT_MODEL_H_
