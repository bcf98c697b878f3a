// The LSTM language model of Zaremba et al. 2014 ("Recurrent Neural Network Regularization") as
// TensorFlow 1 programs train it (lm/ptb_word_lm.py of chentingpc/dpq_embedding_compression and the
// tutorial it comes from), from an .npz of the checkpoint's variables
// (examples/tensorflow/export_npz.py), with its peculiarities:
//   - a kernel [inputs + units, 4 units] multiplies the row [x; h], its column blocks in the order
//     i, j (candidate), f, o
//   - the cell adds its forget bias when it runs: the checkpoint does not hold it
//   - the softmax has [units, words]; it is not tied to the embedding
//   - slots of the optimiser and scalars (steps, learning rates) lie beside the network
#ifndef KINGLET_CONVERTERS_FAMILIES_ZAREMBA_TF_H_
#define KINGLET_CONVERTERS_FAMILIES_ZAREMBA_TF_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kZarembaFamily = "zaremba-tf";

bool LooksLikeZaremba(std::span<const SourceTensor> weights);

// The forget bias is `forget_bias` of the configuration file, if the user gives one, and 0 without;
// it becomes part of the bias. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused and
// mis-shaped tensors (all in one line) and values that are not finite; KINGLET_UNSUPPORTED for the
// opaque weights of cuDNN's LSTM; those of reading the configuration.
Result<LoadedModel> LoadZaremba(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ZAREMBA_TF_H_
