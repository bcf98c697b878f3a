// Models with random weights, for what only the shapes, bits and zeros of a network decide: sizes,
// operations, time. MicroNet's architecture (Yan et al. 2020), through the same loader and passes
// as a converted checkpoint, so that a synthesised file is what a conversion would have written.
#ifndef KINGLET_TESTS_SYNTHESIS_SYNTHESIS_H_
#define KINGLET_TESTS_SYNTHESIS_SYNTHESIS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

// Of single tensors, by their names in the training code's state dict: the share of entries that
// are zero, in [0, 1].
using Sparsities = std::map<std::string, double, std::less<>>;

// The published 8.3 M network unless said otherwise.
struct SynthesisSpec {
  std::string name = "micronet";  // goes into the file's provenance
  uint32_t vocabulary_size = 267735;
  std::vector<uint32_t> cutoffs = {3500, 25000};
  std::vector<uint32_t> widths = {256, 64, 4};  // of the bins' rows; the first is the model's
  uint32_t layers = 8, heads = 8, key_size = 24, value_size = 24, inner = 768;
  uint32_t window = 97;  // slots that attention sees, the token's own among them
  uint32_t cache = 0;    // words that the neural cache remembers; 0: no cache
  double cache_theta = 0.016, cache_lambda = 0.07;  // where the training code starts
  int bits = 0;  // 0: float32; otherwise weights and activations are quantised
  // Tensors that are not named here: `other_sparsity` if the training code prunes them, dense if
  // not.
  Sparsities sparsities = {};
  double other_sparsity = 0;
  // How many words of a text lie in each bin: the clusters get the probabilities of their bins. If
  // empty, every cluster is about as probable as a word of the head.
  std::vector<uint64_t> bin_counts = {};
  uint64_t seed = 1;
};

// The name under which a model file keeps a tensor of the state dict: a table that embedding and
// softmax share has the softmax's, whichever of its two names is given.
std::string StoredName(std::string_view state_dict_name);

// The same values on every machine. A tensor's values depend on the seed, its name and its shape
// only, so specs that differ elsewhere share them; from 3 bits on no entry rounds to zero, so
// what is zero is what was pruned. Activation quantisers have the ranges that these weights reach.
// The model has ids only, no vocabulary. Peak memory is about three times the weights in float32,
// with SerialiseModel.
// Errors: KINGLET_INVALID_ARGUMENT naming the number that cannot be, or the tensor that is not.
Result<ModelDraft> Synthesise(const SynthesisSpec& spec);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_SYNTHESIS_H_
