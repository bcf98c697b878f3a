// Differentiable product quantisation (DPQ; Chen, Li & Sun, ICML 2020). Training leaves a query
// matrix (a vector per word), a key matrix and a value matrix. Each word's query picks its nearest
// key at every position: the picks are the word's codes, the values are the codebook, and queries
// and keys are discarded.
#ifndef KINGLET_CONVERTERS_PASSES_DPQ_H_
#define KINGLET_CONVERTERS_PASSES_DPQ_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "converters/passes/coded_table.h"
#include "kinglet/status.h"

namespace kinglet {

// D positions, K choices each; the response of choice k at position j to a word's query q is
//   dot        <q_j, key_jk>                                     (DPQ-SX, by softmax)
//   euclidean  -|q_j|^2 + 2 <q_j, key_jk> - |key_jk|^2           (DPQ-VQ, by vector quantisation)
// Batch norm then normalises responses with its running statistics, (r - mean) / sqrt(variance +
// epsilon). Batch norm shifts and scales choices differently, so omitting it would change codes.
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
  bool shared = false;    // all positions use the same keys and values (subspace-sharing)
  bool additive = false;  // a row is the mean of its D values, not their concatenation
  uint64_t words = 0, positions = 0, choices = 0;
  uint64_t key_length = 0, value_length = 0;
  // The arrays must outlive the call. The number of subspaces is 1 if shared, else D.
  std::span<const float> query;   // [words, positions * key_length]
  std::span<const float> keys;    // [subspaces, choices, key_length]
  std::span<const float> values;  // [subspaces, choices, value_length]; empty: the keys (DPQ-VQ)
  std::span<const float> mean, variance;
};

struct DpqCodes {
  CodedTable table;
  // Codes whose response is near enough to another choice's that the framework, which computes in
  // float32, may have chosen the other choice; and the words with near codes. "Near" is what
  // rounding can add up to at most (Higham, Accuracy and Stability of Numerical Algorithms,
  // section 3.1).
  uint64_t near_codes = 0, near_words = 0;
  // The smallest difference between the two largest responses of any word and position.
  double smallest_gap = std::numeric_limits<double>::infinity();
};

// The sentence about near codes for the user; empty without near codes. `query` names the tensor.
std::string NearCodesNote(const DpqCodes& codes, const std::string& query);

// The code at a position is the choice with the largest response, of equal ones the first;
// responses are computed in double. The result does not depend on `threads`. Errors:
// KINGLET_INVALID_CHECKPOINT, naming an array whose size does not fit, an entry that is not finite
// or a variance below 0. REQUIRES: threads >= 1.
Result<DpqCodes> AssignDpqCodes(const DpqTraining& training, size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_DPQ_H_
