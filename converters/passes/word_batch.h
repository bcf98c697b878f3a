// Vectors of a batch of words, computed together in double precision, from which the tables of
// DeFINE units and of character CNNs are made.
#ifndef KINGLET_CONVERTERS_PASSES_WORD_BATCH_H_
#define KINGLET_CONVERTERS_PASSES_WORD_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kinglet {

// Words of a batch.
inline constexpr size_t kBatchWords = 32;

// Vectors of a batch of words, feature by feature: feature f of word w is
// values[f * kBatchWords + w], so that joining, mixing and shuffling copy whole lines.
class FeatureBatch {
 public:
  explicit FeatureBatch(uint64_t features) : values_(features * kBatchWords) {}

  double* Feature(uint64_t feature) { return values_.data() + feature * kBatchWords; }
  const double* Feature(uint64_t feature) const { return values_.data() + feature * kBatchWords; }

 private:
  std::vector<double> values_;
};

// output[f, w] = sum over i of matrix[f, i] * input[i, w], added in order of i from 0: the same
// bits on every machine. `matrix` is [rows, columns]; `input` and `output` are complete features.
void MultiplyBatch(const float* matrix, uint64_t rows, uint64_t columns, const double* input,
                   double* output);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_WORD_BATCH_H_
