// One layer of a DeFINE unit, applied to a block of words at a time in double precision.
#ifndef KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_
#define KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converters/passes/define/define_weights.h"

namespace kinglet {

// Words computed together.
inline constexpr size_t kDefineBlock = 32;

// Vectors of a block of words, feature by feature: feature f of word w is
// values[f * kDefineBlock + w], so that joining, mixing and shuffling copy whole lines.
class FeatureBlock {
 public:
  explicit FeatureBlock(uint64_t features) : values_(features * kDefineBlock) {}

  double* Feature(uint64_t feature) { return values_.data() + feature * kDefineBlock; }
  const double* Feature(uint64_t feature) const { return values_.data() + feature * kDefineBlock; }

 private:
  std::vector<double> values_;
};

// output[f, w] = sum over i of matrix[f, i] * input[i, w], added in order of i from 0: the same
// bits on every machine. `matrix` is [rows, columns]; `input` and `output` are whole features.
void MultiplyBlock(const float* matrix, uint64_t rows, uint64_t columns, const double* input,
                   double* output);

// The output of `layer` for the e of its unit and the previous layer's output. `joined` and
// `unshuffled` are work space as wide as the layer's input and output. Nothing is allocated.
// REQUIRES: CheckUnit and CheckWeights find nothing.
void ApplyLayer(const DefineLayer& layer, const DefineWeights& weights, const FeatureBlock& e,
                uint64_t e_width, const FeatureBlock& previous, uint64_t previous_width,
                FeatureBlock& joined, FeatureBlock& unshuffled, FeatureBlock& output);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_
