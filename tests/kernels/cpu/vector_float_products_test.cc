// Products of one matrix with several vectors at once, on every instruction set of this machine,
// compared with rule 4 of docs/NUMERICS.md spelled out here, element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/cpu/product_weights.h"
#include "tests/kernels/cpu/vector_fixture.h"

namespace kinglet::cpu::vector_float_products_test {
namespace {

// The dot product by rule 4: 16 chains, folded, in tiles of 1,024 that fold pairwise.
float OrderedDot(const float* a, const float* x, size_t n) {
  if (n < 32) {
    float sum = 0;
    for (size_t i = 0; i < n; ++i) sum = std::fma(a[i], x[i], sum);
    return sum;
  }
  std::vector<float> tiles;
  for (size_t begin = 0; begin < n; begin += 1024) {
    float chains[16] = {};
    for (size_t i = begin; i < std::min(n, begin + 1024); ++i) {
      chains[i % 16] = std::fma(a[i], x[i], chains[i % 16]);
    }
    for (size_t scale = 8; scale > 0; scale /= 2) {
      for (size_t j = 0; j < scale; ++j) chains[j] += chains[j + scale];
    }
    tiles.push_back(chains[0]);
  }
  while (tiles.size() > 1) {
    std::vector<float> folded;
    for (size_t i = 0; i + 1 < tiles.size(); i += 2) folded.push_back(tiles[i] + tiles[i + 1]);
    if (tiles.size() % 2 == 1) folded.push_back(tiles.back());
    tiles = std::move(folded);
  }
  return tiles[0];
}

class ManyVectorsOfFloats : public testing::TestWithParam<Target> {
 protected:
  const VectorFunctions* functions_ = FindVectorFunctions(GetParam());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ManyVectorsOfFloats);

// `weight(row)` gives a row's values.
template <class Product, class Row>
void CheckFloats(const ProductShape& shape, const AlignedVector<float>& bias, TestRandom& random,
                 const Product& product, const Row& weight) {
  for (const size_t count : {0u, 1u, 2u, 3u, 8u, 9u, 17u}) {
    std::vector<std::vector<float>> x(count, std::vector<float>(shape.cols));
    std::vector<AlignedVector<float>> y(count);
    std::vector<RealVector> vectors;
    for (size_t i = 0; i < count; ++i) {
      for (float& value : x[i]) value = random.Signed();
      y[i].resize(shape.rows + 1);
      y[i][shape.rows] = kGuard;
      vectors.push_back({x[i].data(), y[i].data()});
    }
    const Finish finish = {count % 2 == 0 ? bias.data() : nullptr, count % 3 == 0};
    product(vectors.data(), count, finish);
    for (size_t row = 0; row < shape.rows; ++row) {
      const std::vector<float> values = weight(row);
      for (size_t i = 0; i < count; ++i) {
        float expected = OrderedDot(values.data(), x[i].data(), shape.cols);
        if (finish.bias != nullptr) expected += finish.bias[row];
        if (finish.relu) expected = std::max(expected, 0.0f);
        ASSERT_EQ(y[i][row], expected)
            << shape.rows << "x" << shape.cols << ", " << i << " of " << count;
      }
    }
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(y[i][shape.rows], kGuard);
  }
}

TEST_P(ManyVectorsOfFloats, DecodedProductsKeepTheOrderOfSums) {
  TestRandom random(2);
  for (const int bits : {5, 9, 13}) {
    for (const ProductShape& shape : kProductShapes) {
      const ProductWeights weights = MakeWeights(shape, bits, *functions_, random);
      CheckFloats(
          shape, weights.bias, random,
          [&](const RealVector* vectors, size_t count, const Finish& finish) {
            functions_->decoded_product(weights.integers.code_panels(), vectors, count, finish);
          },
          [&](size_t row) {
            std::vector<float> values(shape.cols);
            for (size_t col = 0; col < shape.cols; ++col) {
              values[col] =
                  static_cast<float>(weights.codes[row * shape.cols + col]) * weights.scales[row];
            }
            return values;
          });
    }
  }
}

TEST_P(ManyVectorsOfFloats, RealProductsKeepTheOrderOfSums) {
  TestRandom random(3);
  for (const ProductShape& shape : kProductShapes) {
    const ProductWeights weights = MakeWeights(shape, 9, *functions_, random);
    CheckFloats(
        shape, weights.bias, random,
        [&](const RealVector* vectors, size_t count, const Finish& finish) {
          functions_->real_product(weights.floats.real_panels(), vectors, count, finish);
        },
        [&](size_t row) {
          const auto begin = weights.values.begin() + static_cast<ptrdiff_t>(row * shape.cols);
          return std::vector<float>(begin, begin + static_cast<ptrdiff_t>(shape.cols));
        });
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, ManyVectorsOfFloats, testing::ValuesIn(VectorTargets()),
                         [](const auto& target) { return std::string(TargetName(target.param)); });

}  // namespace
}  // namespace kinglet::cpu::vector_float_products_test
