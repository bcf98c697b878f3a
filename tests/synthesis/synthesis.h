// MicroNet models (Yan et al. 2020) with random weights, to measure what depends only on shapes,
// bits and zeros: sizes, operations, time. The models go through the loader and the passes of a
// converted checkpoint, so a synthesised file has the layout that a conversion writes.
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

// Tensor name in the framework's state dict -> fraction of its entries that are zero, in [0, 1].
using Sparsities = std::map<std::string, double, std::less<>>;

// The defaults are the published network of 8.3 million parameters.
struct SynthesisSpec {
  std::string name = "micronet";  // goes into the file's provenance
  uint32_t vocabulary_size = 267735;
  std::vector<uint32_t> cutoffs = {3500, 25000};
  std::vector<uint32_t> widths = {256, 64, 4};  // of the bins' rows; the first is the model's
  uint32_t layers = 8, heads = 8, key_size = 24, value_size = 24, inner = 768;
  uint32_t window = 97;  // slots that attention sees, the token's own among them
  uint32_t cache = 0;    // words that the neural cache remembers; 0 means no cache
  double cache_theta = 0.016, cache_lambda = 0.07;  // where the framework starts
  int bits = 0;  // 0 means float32; otherwise weights and activations are quantised
  // A tensor that is not listed has `other_sparsity` if the framework prunes it; otherwise it
  // is dense.
  Sparsities sparsities = {};
  double other_sparsity = 0;
  // Number of a text's words in each bin; sets the clusters' probabilities. If empty, each cluster
  // is about as probable as one word of the head.
  std::vector<uint64_t> bin_counts = {};
  uint64_t seed = 1;
};

// The name of a state dict's tensor in the model file. A table that embedding and softmax share has
// two names in the state dict; both give the softmax's.
std::string StoredName(std::string_view state_dict_name);

// A model without its values, and how many entries of each tensor are not zero: all that counting
// needs.
struct SynthesisOutline {
  ModelDraft draft;                // shapes and encodings; each tensor's values are empty
  std::vector<uint64_t> nonzeros;  // by tensor; as Synthesise makes them, with 3 bits or more
};
// Errors: as Synthesise.
Result<SynthesisOutline> OutlineMicronet(const SynthesisSpec& spec);

// A model with the same values on every machine. A tensor's values depend only on the seed, its
// name and its shape. With 3 bits or more no entry rounds to zero, so exactly the pruned entries
// are zero. Activation quantisers have the ranges that these weights reach. The model has no
// vocabulary. Peak memory, with SerialiseModel, is about three times the weights in float32.
// Errors: KINGLET_INVALID_ARGUMENT, naming the value out of range or the unknown tensor.
Result<ModelDraft> Synthesise(const SynthesisSpec& spec);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_SYNTHESIS_H_
