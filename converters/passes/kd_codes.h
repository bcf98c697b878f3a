// KD codes, K-way D-dimensional discrete codes (Chen, Min & Sun, ICML 2018, "Learning K-way
// D-dimensional Discrete Codes for Compact Embedding Representations"), as coded tables.
#ifndef KINGLET_CONVERTERS_PASSES_KD_CODES_H_
#define KINGLET_CONVERTERS_PASSES_KD_CODES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "converters/passes/coded_table.h"
#include "kinglet/status.h"

namespace kinglet {

// Codes from logits [words, positions, choices]: at each position the choice with the largest
// logit, of equal ones the first. Errors: KINGLET_INVALID_CHECKPOINT.
Result<std::vector<uint32_t>> CodesFromLogits(std::span<const float> logits, uint64_t choices);

// How a word's D code vectors become its vector. The paper's code has more aggregators (mean_fnn,
// fnn, cnn, rnn), which are nonlinear functions of all codes of a word: a model with one of them
// can only be stored as a decoded table.
enum class KdAggregator : uint8_t {
  kMean,        // their mean
  kMeanLinear,  // batch norm, then a dense layer, of the mean
};

struct KdTraining {
  KdAggregator aggregator = KdAggregator::kMean;
  bool shared = false;  // all positions use the same code vectors
  uint64_t words = 0, positions = 0, choices = 0;
  uint64_t length = 0;                // d_c: of a code vector
  std::vector<uint32_t> codes;        // [words, positions], each below `choices`
  std::span<const float> embeddings;  // [positions * choices, length]; shared: [choices, length]
  // The remaining members are for kMeanLinear only. Batch norm is (x - mean) / sqrt(variance +
  // epsilon) * gain + offset over [length]. All four empty: no batch norm. Gain or offset empty: 1
  // or 0.
  std::span<const float> gain, offset, mean, variance;
  double epsilon = 1e-3;
  uint64_t width = 0;             // d: of a word's vector
  std::span<const float> kernel;  // [length, width], as in tf.layers.dense
  std::span<const float> bias;    // [width], or empty
};

// Row w of the embedding is projection * (row w of the table), or that row itself.
struct KdTable {
  CodedTable table;
  std::vector<float> projection;  // [width, columns of the table]; empty without a projection
};

// With kMeanLinear, batch norm a * x + c (a and c by feature) and the dense layer W x + b are one
// affine map, (W a) x + (W c + b). A projection has no bias: if W c + b is not zero, the projection
// gets W c + b as one more column, and each code vector gets one more feature, the constant 1,
// whose mean over positions is 1. Computed in double precision and rounded once.
// Errors: KINGLET_INVALID_CHECKPOINT, naming the array.
Result<KdTable> KdEmbedding(KdTraining training);

// The table of `embedding` without a projection: every code vector v becomes projection * v, so the
// codebook is `width` wide.
CodedTable WithoutProjection(KdTable embedding);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_KD_CODES_H_
