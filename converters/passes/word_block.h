// Vectors of a block of words, computed together in double precision: what the tables of DeFINE
// units and of character CNNs are made with.
#ifndef KINGLET_CONVERTERS_PASSES_WORD_BLOCK_H_
#define KINGLET_CONVERTERS_PASSES_WORD_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kinglet {

// Words of a block.
inline constexpr size_t kBlockWords = 32;

// Vectors of a block of words, feature by feature: feature f of word w is
// values[f * kBlockWords + w], so that joining, mixing and shuffling copy whole lines.
class FeatureBlock {
 public:
  explicit FeatureBlock(uint64_t features) : values_(features * kBlockWords) {}

  double* Feature(uint64_t feature) { return values_.data() + feature * kBlockWords; }
  const double* Feature(uint64_t feature) const { return values_.data() + feature * kBlockWords; }

 private:
  std::vector<double> values_;
};

// output[f, w] = sum over i of matrix[f, i] * input[i, w], added in order of i from 0: the same
// bits on every machine. `matrix` is [rows, columns]; `input` and `output` are whole features.
void MultiplyBlock(const float* matrix, uint64_t rows, uint64_t columns, const double* input,
                   double* output);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_WORD_BLOCK_H_
