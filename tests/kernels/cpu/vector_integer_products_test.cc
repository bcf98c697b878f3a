// Products of one matrix with several vectors at once, on every instruction set of this machine,
// compared with exact sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/product.h"
#include "tests/kernels/cpu/product_weights.h"
#include "tests/kernels/cpu/vector_fixture.h"

namespace kinglet::cpu::vector_integer_products_test {
namespace {

class ManyVectors : public testing::TestWithParam<Target> {
 protected:
  const VectorFunctions* functions_ = FindVectorFunctions(GetParam());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ManyVectors);

TEST_P(ManyVectors, IntegerProductsAreExact) {
  TestRandom random(1);
  for (const int bits : {2, 3, 4, 5, 8, 9, 13}) {
    for (const ProductShape& shape : kProductShapes) {
      const ProductWeights weights = MakeWeights(shape, bits, *functions_, random);
      // Once in one chunk of 32-bit sums, once in chunks as small as they may be.
      const size_t least = BlockCols(CodeFormOf(bits, shape.cols)) / 2;
      for (const size_t chunk : {ChunkPairs(bits, 255), least}) {
        for (const size_t count : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 33u}) {
          std::vector<std::vector<int16_t>> x(count, std::vector<int16_t>(shape.cols));
          std::vector<AlignedVector<float>> y(count);
          std::vector<CodeVector> vectors;
          for (size_t i = 0; i < count; ++i) {
            for (int16_t& code : x[i]) code = static_cast<int16_t>(random.Below(511)) - 255;
            y[i].resize(shape.rows + 1);
            y[i][shape.rows] = kGuard;
            vectors.push_back({x[i].data(), 0.25f * static_cast<float>(i + 1), y[i].data()});
          }
          const Finish finish = {count % 2 == 0 ? weights.bias.data() : nullptr, count % 3 == 0};
          functions_->integer_product(weights.integers.code_panels(), vectors.data(), count, chunk,
                                      finish);
          for (size_t i = 0; i < count; ++i) {
            for (size_t row = 0; row < shape.rows; ++row) {
              int64_t sum = 0;
              for (size_t col = 0; col < shape.cols; ++col) {
                sum += int64_t{weights.codes[row * shape.cols + col]} * x[i][col];
              }
              float expected = static_cast<float>(sum) * (weights.scales[row] * vectors[i].step);
              if (finish.bias != nullptr) expected += finish.bias[row];
              if (finish.relu) expected = std::max(expected, 0.0f);
              ASSERT_EQ(y[i][row], expected) << bits << " bits, " << shape.rows << "x" << shape.cols
                                             << ", " << i << " of " << count;
            }
            ASSERT_EQ(y[i][shape.rows], kGuard);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, ManyVectors, testing::ValuesIn(VectorTargets()),
                         [](const auto& target) { return std::string(TargetName(target.param)); });

}  // namespace
}  // namespace kinglet::cpu::vector_integer_products_test
