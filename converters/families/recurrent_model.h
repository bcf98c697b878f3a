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

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/recurrent_layers.h"
#include "converters/passes/coded_table.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// A dense layer between the recurrent layers and the softmax.
struct DenseLayerNames {
  std::string weight, bias, norm_gain, norm_bias;  // without a norm its names are empty
  Activation activation = Activation::kNone;
};

// A size that a configuration states, for comparison with the tensors.
struct StatedSize {
  enum What : uint8_t { kWords, kInputs, kUnits, kLayers, kDenseUnits };
  std::string option;
  int64_t value;
  What what;  // units: of every layer
};

struct RecurrentNames {
  std::string network;  // for messages: "an awd-lstm network"
  std::string embedding = "encoder.weight";
  std::string embedding_copy = {};  // the embedding again, which must be equal; may be missing
  std::string softmax_weight = "decoder.weight", softmax_bias = "decoder.bias";
  std::vector<RecurrentLayerNames> layers;
  // The cell of all layers. If nullopt, the shape of each recurrent weight tells LSTM from GRU.
  std::optional<RecurrentCell> cell;
  // The words at which tails begin, ascending. The cluster rows are in reverse order of the tails.
  std::vector<uint64_t> splits;
  // The input's vectors, if they are not the tensor `embedding`.
  std::optional<CodedTable> coded_input;
  std::vector<DenseLayerNames> dense;  // epsilon of their norms: PyTorch's 1e-5
  std::string configuration;           // the file that states sizes, for messages
  std::vector<StatedSize> stated;
  std::string tied_by;  // an option that is true and makes embedding and softmax one table
  bool ties = false;    // the framework makes them one unless told otherwise
  std::string to_tie;   // how a user states the tie that the framework may have
};

// Reads the tables and the layers' tensors; with splits also "criterion.tail_vectors" and
// "criterion.tail_bias". Tables with equal values become one. Errors: KINGLET_INVALID_CHECKPOINT
// for missing, unused and mis-shaped tensors (all in one message), for values that are not finite,
// by tensor and index, and for options that contradict the tensors.
Result<LoadedModel> LoadRecurrent(const RecurrentNames& names,
                                  std::span<const CheckpointTensor> weights,
                                  NameReport* report = nullptr);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_RECURRENT_MODEL_H_
