// The family `zaremba-tf`: LSTM language models of Zaremba et al. 2014 ("Recurrent Neural Network
// Regularization") from TensorFlow 1.
// Framework: the PTB tutorial's ptb_word_lm.py and lm/ptb_word_lm.py of
// chentingpc/dpq_embedding_compression, whose input may be a DPQ embedding (Chen, Li & Sun 2020).
// Files: TensorFlow's checkpoint, or an .npz of its variables (examples/tensorflow/export_npz.py).
// Peculiarities:
//   - a kernel [inputs + units, 4 units] multiplies the row [x; h]; its column blocks are in the
//     order i, j (candidate), f, o
//   - the cell adds its forget bias when it runs; the checkpoint does not store it
//   - the softmax weight is [units, words] and not tied to the embedding
//   - the options of a DPQ embedding (kdq_emb) are not in the file and follow from the shapes
//   - the file also holds the optimiser's slots and scalars (steps, learning rates)
#ifndef KINGLET_CONVERTERS_FAMILIES_ZAREMBA_TF_H_
#define KINGLET_CONVERTERS_FAMILIES_ZAREMBA_TF_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kZarembaFamily = "zaremba-tf";

bool LooksLikeZaremba(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> ZarembaOptions();

// The forget bias, `forget_bias` of the configuration file, or 0 without a file, becomes part of
// the LSTM's bias. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused and mis-shaped tensors
// (all in one message) and for values that are not finite; KINGLET_UNSUPPORTED for the opaque
// weights of cuDNN's LSTM; those of ConfigFile.
Result<LoadedModel> LoadZaremba(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ZAREMBA_TF_H_
