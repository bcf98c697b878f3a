// Differentiable product quantisation (Chen, Li & Sun, ICML 2020): what training leaves, a query
// vector per word, keys and values, becomes codes and a codebook; queries and keys are discarded.
#ifndef KINGLET_CONVERTERS_PASSES_DPQ_H_
#define KINGLET_CONVERTERS_PASSES_DPQ_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "converters/passes/coded_table.h"
#include "kinglet/status.h"

namespace kinglet {

// D positions, K choices each; the response of choice k at position j to a query q is
//   dot        <q_j, key_jk>                                     (DPQ-SX)
//   euclidean  -|q_j|^2 + 2 <q_j, key_jk> - |key_jk|^2           (DPQ-VQ)
// then normalised with the running statistics, (r - mean) / sqrt(variance + epsilon), which shifts
// and scales choices against each other: without it codes change.
struct DpqTraining {
  enum class Response : uint8_t { kDot, kEuclidean };
  enum class BatchNorm : uint8_t {
    kNone,
    kPerChoice,    // statistics [K], the same at every position: the TensorFlow original, 1e-3
    kPerResponse,  // statistics [D * K], entry j * K + k: PyTorch modules, 1e-5
  };

  Response response = Response::kDot;
  BatchNorm batch_norm = BatchNorm::kPerChoice;
  double epsilon = 1e-3;
  bool shared = false;    // one set of keys and values serves all positions
  bool additive = false;  // a row is the mean of its D values, not their concatenation
  uint64_t words = 0, positions = 0, choices = 0;
  uint64_t key_length = 0, value_length = 0;
  // Must outlive the call. Subspaces are 1 if shared, else D.
  std::span<const float> query;   // [words, positions * key_length]
  std::span<const float> keys;    // [subspaces, choices, key_length]
  std::span<const float> values;  // [subspaces, choices, value_length]; empty: the keys (DPQ-VQ)
  std::span<const float> mean, variance;
};

struct DpqCodes {
  CodedTable table;
  // Words at one of whose positions the two largest responses differ by at most 1e-6 of the larger
  // magnitude: float32 arithmetic may give them another code.
  uint64_t near_ties = 0;
};

// The code of a position is its first largest response, computed in double precision. The result
// does not depend on `threads`. Errors: KINGLET_INVALID_CHECKPOINT, naming an array whose size does
// not fit, an entry that is not finite or a variance below 0. REQUIRES: threads >= 1.
Result<DpqCodes> AssignDpqCodes(const DpqTraining& training, size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_DPQ_H_
