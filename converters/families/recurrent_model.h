// What the recurrent families share: an embedding, recurrent layers, and a softmax that may be
// split into head and tails (Merity et al. 2017, "Regularizing and Optimizing LSTM Language
// Models", splitcross.py). A family gives the tensors' names.
#ifndef KINGLET_CONVERTERS_FAMILIES_RECURRENT_MODEL_H_
#define KINGLET_CONVERTERS_FAMILIES_RECURRENT_MODEL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/families/families.h"
#include "converters/families/recurrent_layers.h"
#include "converters/passes/coded_table.h"
#include "converters/sources/source_weights.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

struct RecurrentNames {
  std::string network;  // for messages: "an awd-lstm network"
  std::vector<RecurrentLayerNames> layers;
  // The cell of all layers. None: the shape of each recurrent weight tells LSTM from GRU.
  std::optional<RecurrentCell> cell;
  // The words at which tails begin, ascending. The cluster rows are in reverse order of the tails.
  std::vector<uint64_t> splits;
  // The input's vectors, if they are not the tensor "encoder.weight".
  std::optional<CodedTable> coded_input;
};

// Reads "encoder.weight", "decoder.weight" and "decoder.bias", with splits also
// "criterion.tail_vectors" and "criterion.tail_bias", and the layers' tensors. Tables with equal
// values become one. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused and mis-shaped tensors
// (all in one message) and for values that are not finite, by tensor and index.
Result<LoadedModel> LoadRecurrent(const RecurrentNames& names,
                                  std::span<const SourceTensor> weights);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_RECURRENT_MODEL_H_
