// Compares with sums that are written out for small layers.
#include "runtime/accounting/define_operations.h"

#include <gtest/gtest.h>

namespace kinglet::define_operations_test {
namespace {

using Layer = DefineLayer;

void ExpectTally(const OperationTally& found, double multiplications, double additions,
                 double others) {
  EXPECT_EQ(found.multiplications, multiplications);
  EXPECT_EQ(found.additions, additions);
  EXPECT_EQ(found.others, others);
}

// Two groups of 3 inputs and 5 outputs: 10 sums of 3 products each, and 10 biases.
TEST(DefineOperations, ProductsOfGroups) {
  for (const auto sharing : {Layer::Weights::kPerGroup, Layer::Weights::kShared}) {
    const Layer layer{.in = 6, .out = 10, .groups = 2, .weights = sharing};
    ExpectTally(OperationsOf(layer).products, 30, 20 + 10, 0);
  }
  const Layer bare{.in = 6, .out = 10, .groups = 2, .bias = Layer::Bias::kNone};
  ExpectTally(OperationsOf(bare).products, 30, 20, 0);
}

// A norm of n elements: mean n - 1 sums and a division; variance n differences, n squares, n - 1
// sums, a division; epsilon and a root; then n differences and divisions, gains and offsets.
TEST(DefineOperations, Norms) {
  Layer layer{.in = 6, .out = 10, .groups = 2, .norm = Layer::Norm::kWhole};
  ExpectTally(OperationsOf(layer).norm, 20, 9 + 10 + 9 + 1 + 10 + 10, 1 + 1 + 1 + 10);
  layer.norm = Layer::Norm::kPerGroup;
  ExpectTally(OperationsOf(layer).norm, 2 * 10, 2 * (4 + 5 + 4 + 1 + 5 + 5), 2 * (3 + 5));
  layer.norm_gain = layer.norm_offset = false;
  ExpectTally(OperationsOf(layer).norm, 10, 2 * (4 + 5 + 4 + 1 + 5), 2 * (3 + 5));
}

TEST(DefineOperations, ActivationsAndResiduals) {
  Layer layer{.in = 6, .out = 10};
  ExpectTally(OperationsOf(layer).activation, 0, 0, 0);
  ExpectTally(OperationsOf(layer).residual, 0, 0, 0);
  layer.activation = Layer::Activation::kRelu;
  ExpectTally(OperationsOf(layer).activation, 0, 0, 10);
  layer.activation = Layer::Activation::kGelu;
  layer.residual = Layer::Residual::kAfterActivation;
  ExpectTally(OperationsOf(layer).activation, 10, 0, 10);
  ExpectTally(OperationsOf(layer).residual, 0, 10, 0);
}

}  // namespace
}  // namespace kinglet::define_operations_test
