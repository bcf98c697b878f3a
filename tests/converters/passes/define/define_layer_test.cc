#include "converters/passes/define/define_layer.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace kinglet::define_layer_test {
namespace {

// Sizes around the tiles and panels that the product is cut into.
TEST(MultiplyBlock, EqualsAPlainSumInOrderBitForBit) {
  TestRandom random(1);
  for (const uint64_t rows : {1, 3, 4, 5, 9}) {
    for (const uint64_t columns : {1, 2, 255, 256, 257, 600}) {
      std::vector<float> matrix(rows * columns);
      for (float& entry : matrix) entry = random.Signed();
      FeatureBlock input(columns), output(rows + 1);
      for (uint64_t i = 0; i < columns * kDefineBlock; ++i) input.Feature(0)[i] = random.Signed();
      std::fill_n(output.Feature(0), (rows + 1) * kDefineBlock, 7.0);
      MultiplyBlock(matrix.data(), rows, columns, input.Feature(0), output.Feature(0));
      for (uint64_t row = 0; row < rows; ++row) {
        for (size_t word = 0; word < kDefineBlock; ++word) {
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

TEST(ApplyLayer, ShuffleMovesFeatureJOfGroupGToJTimesGroupsPlusG) {
  // Three groups of two features; each weight is 1.
  const DefineLayer layer = {.in = 3,
                             .out = 6,
                             .groups = 3,
                             .bias = DefineLayer::Bias::kPerGroup,
                             .shuffle = DefineLayer::Shuffle::kBeforeNorm};
  const DefineWeights weights = {.weight = std::vector<float>(6, 1),
                                 .bias = {0, 10, 0, 10, 0, 10},
                                 .norm_gain = {},
                                 .norm_offset = {}};
  FeatureBlock e(3), joined(3), unshuffled(6), output(6);
  for (int feature = 0; feature < 3; ++feature) {
    for (size_t word = 0; word < kDefineBlock; ++word) {
      e.Feature(feature)[word] = 100 * feature + static_cast<double>(word);
    }
  }
  ApplyLayer(layer, weights, e, 3, e, 3, joined, unshuffled, output);
  for (size_t word = 0; word < kDefineBlock; ++word) {
    const double expected[] = {0, 100, 200, 10, 110, 210};
    for (int feature = 0; feature < 6; ++feature) {
      EXPECT_EQ(output.Feature(feature)[word], expected[feature] + static_cast<double>(word));
    }
  }
}

}  // namespace
}  // namespace kinglet::define_layer_test
