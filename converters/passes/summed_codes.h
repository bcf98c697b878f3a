// A matrix -> codes whose vectors, each as wide as a row, are added up: what compositional codes
// (Shu & Nakayama 2018) are, found by clustering instead of training.
#ifndef KINGLET_CONVERTERS_PASSES_SUMMED_CODES_H_
#define KINGLET_CONVERTERS_PASSES_SUMMED_CODES_H_

#include <cstdint>
#include <functional>
#include <span>

#include "converters/passes/coded_table.h"
#include "converters/passes/k_means.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

struct SumQuantisation {
  uint64_t positions = 32;   // M: vectors that make a row
  uint64_t choices = 16;     // K: vectors that each position chooses from
  uint64_t sweeps = 8;       // over all positions, at most, after the first codes are found
  KMeansOptions clustering;  // its `progress` is not called; this one is:
  std::function<void(uint64_t position, const KMeansStep& step)> progress;  // may be empty
};

// First each position clusters what the positions before it left of the rows (residual vector
// quantisation: Chen, Guan & Wang 2010, "Approximate nearest neighbor search by residual vector
// quantization"); position j is clustered with the j-th number of SplitMix64(clustering.seed) as
// seed. Then positions take turns: with all others fixed, each row chooses anew and each vector
// becomes the mean of what it has to stand for, so no turn makes the squared error larger but by
// rounding; a sweep that lowers it by less than clustering.tolerance of it is the last. The
// codebook is float32; Combine::kSum. Memory: the matrix once more; time: that of `positions`
// clusterings and of one iteration for each turn. Errors: KINGLET_INVALID_ARGUMENT for values that
// do not fill the shape, an empty one, no positions, no choices or more than rows, more of both
// than a codebook may have rows, and all that KMeans refuses; KINGLET_NOT_FINITE likewise.
Result<CodedTable> QuantiseToSums(std::span<const float> values, const Shape& shape,
                                  const SumQuantisation& options);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SUMMED_CODES_H_
