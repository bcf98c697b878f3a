// K-way D-dimensional codes (Chen, Min & Sun, ICML 2018) as coded tables.
#ifndef KINGLET_CONVERTERS_PASSES_KD_CODES_H_
#define KINGLET_CONVERTERS_PASSES_KD_CODES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "converters/passes/coded_table.h"
#include "kinglet/status.h"

namespace kinglet {

// The first largest of each `choices` adjacent logits, [words, positions, choices]. Errors:
// KINGLET_INVALID_CHECKPOINT.
Result<std::vector<uint32_t>> CodesFromLogits(std::span<const float> logits, uint64_t choices);

// How a word's D code vectors become its vector. Chen's code knows more (mean_fnn, fnn, cnn, rnn):
// nonlinear functions of the codes together, which only a decoded table can hold.
enum class KdAggregator : uint8_t {
  kMean,        // their mean
  kMeanLinear,  // batch norm, then a dense layer, of the mean
};

struct KdTraining {
  KdAggregator aggregator = KdAggregator::kMean;
  bool shared = false;  // one set of code vectors serves all positions
  uint64_t words = 0, positions = 0, choices = 0;
  uint64_t length = 0;                // d_c: of a code vector
  std::vector<uint32_t> codes;        // [words, positions], each below `choices`
  std::span<const float> embeddings;  // [positions * choices, length]; shared: [choices, length]
  // Of kMeanLinear alone. Batch norm is (x - mean) / sqrt(variance + epsilon) * gain + offset over
  // [length]; all four empty: none. Gain and offset may be empty by themselves.
  std::span<const float> gain, offset, mean, variance;
  double epsilon = 1e-3;
  uint64_t width = 0;             // d: of a word's vector
  std::span<const float> kernel;  // [length, width], as tf.layers.dense has it
  std::span<const float> bias;    // [width], or empty
};

// Row w of the embedding is projection * (row w of the table), or that row itself.
struct KdTable {
  CodedTable table;
  std::vector<float> projection;  // [width, columns of the table]; empty: none
};

// With a dense layer, batch norm a * x + c (a and c by feature) and the layer W x + b make one
// affine map, (W a) x + (W c + b). A projection has no bias, so where W c + b is not zero each code
// vector gets one more feature, the constant 1, whose mean is 1, and the projection one more
// column, W c + b. Computed in double precision, rounded once. Errors: KINGLET_INVALID_CHECKPOINT,
// naming the array.
Result<KdTable> KdEmbedding(KdTraining training);

// The same rows without a projection, for a table that cannot have one: every code vector v becomes
// projection * v. The codebook is then `width` wide.
CodedTable WithoutProjection(KdTable embedding);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_KD_CODES_H_
