#include "converters/passes/define/define_layer.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace kinglet::define_layer_test {
namespace {

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
  FeatureBatch e(3), joined(3), unshuffled(6), output(6);
  for (int feature = 0; feature < 3; ++feature) {
    for (size_t word = 0; word < kBatchWords; ++word) {
      e.Feature(feature)[word] = 100 * feature + static_cast<double>(word);
    }
  }
  ApplyLayer(layer, weights, e, 3, e, 3, joined, unshuffled, output);
  for (size_t word = 0; word < kBatchWords; ++word) {
    const double expected[] = {0, 100, 200, 10, 110, 210};
    for (int feature = 0; feature < 6; ++feature) {
      EXPECT_EQ(output.Feature(feature)[word], expected[feature] + static_cast<double>(word));
    }
  }
}

}  // namespace
}  // namespace kinglet::define_layer_test
