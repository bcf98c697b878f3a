// A matrix -> summed codes: each row is the sum of code vectors as wide as the row. Summed codes
// are the compositional codes of Shu & Nakayama (ICLR 2018, "Compressing Word Embeddings via Deep
// Compositional Code Learning"), found here by clustering instead of training.
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
  uint64_t positions = 32;   // M: code vectors whose sum is a row
  uint64_t choices = 16;     // K: code vectors that each position chooses from
  uint64_t sweeps = 8;       // most sweeps over all positions after the first codes are found
  KMeansOptions clustering;  // its `progress` is ignored
  std::function<void(uint64_t position, const KMeansProgress& step)> progress;  // may be empty
};

// Two phases. First, residual vector quantisation (Chen, Guan & Wang 2010, "Approximate nearest
// neighbor search by residual vector quantization"): each position clusters the residual, the rows
// minus the code vectors of the positions before it; position j uses the j-th number of
// SplitMix64(clustering.seed) as its seed. Then sweeps: one position after the other, with all
// others fixed, each row chooses its code again and each code vector becomes the mean of the
// residuals that chose it. Up to rounding, neither change makes the squared error larger. Sweeps
// end when a sweep lowers the squared error by less than the fraction clustering.tolerance.
// The codebook is float32; Combine::kSum. Memory: a copy of the matrix. Time: `positions`
// clusterings, and one iteration of clustering for each position of each sweep.
// Errors: KINGLET_INVALID_ARGUMENT for values that do not fill the shape, an empty shape, no
// positions, no choices, more choices than rows, more positions * choices than a codebook may have
// rows, and all that KMeans refuses; KINGLET_NOT_FINITE as KMeans.
Result<CodedTable> QuantiseToSums(std::span<const float> values, const Shape& shape,
                                  const SumQuantisation& options);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SUMMED_CODES_H_
