#include "converters/passes/word_batch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_builder.h"

namespace kinglet::word_batch_test {
namespace {

// Sizes around the tiles and panels that the product is split into.
TEST(MultiplyBatch, EqualsAPlainSumInOrderBitForBit) {
  TestRandom random(1);
  for (const uint64_t rows : {1, 3, 4, 5, 9}) {
    for (const uint64_t columns : {1, 2, 255, 256, 257, 600}) {
      std::vector<float> matrix(rows * columns);
      for (float& entry : matrix) entry = random.Signed();
      FeatureBatch input(columns), output(rows + 1);
      for (uint64_t i = 0; i < columns * kBatchWords; ++i) input.Feature(0)[i] = random.Signed();
      std::fill_n(output.Feature(0), (rows + 1) * kBatchWords, 7.0);
      MultiplyBatch(matrix.data(), rows, columns, input.Feature(0), output.Feature(0));
      for (uint64_t row = 0; row < rows; ++row) {
        for (size_t word = 0; word < kBatchWords; ++word) {
          double sum = 0;
          for (uint64_t i = 0; i < columns; ++i) {
            sum += matrix[row * columns + i] * input.Feature(i)[word];
          }
          ASSERT_EQ(output.Feature(row)[word], sum) << rows << " " << columns << " " << row;
        }
      }
      ASSERT_EQ(output.Feature(rows)[0], 7) << "written beyond the last feature";
    }
  }
}

}  // namespace
}  // namespace kinglet::word_batch_test
