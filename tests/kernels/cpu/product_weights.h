// Matrices for tests of products with several vectors at once.
#ifndef KINGLET_TESTS_KERNELS_CPU_PRODUCT_WEIGHTS_H_
#define KINGLET_TESTS_KERNELS_CPU_PRODUCT_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/panels.h"
#include "tests/support/model_builder.h"

namespace kinglet::cpu {

inline constexpr float kGuard = 1234.5f;  // after each result

struct ProductShape {
  size_t rows, cols;
};
// Odd sizes, full panels, short sums, several tiles of a rule-4 sum, several tiles of few
// columns.
inline const std::vector<ProductShape> kProductShapes = {
    {1, 1},    {16, 4},   {17, 31},  {33, 32},   {64, 33},
    {79, 128}, {131, 77}, {48, 150}, {20, 2100}, {2065, 3}};

struct ProductWeights {
  std::vector<int16_t> codes;  // [rows][cols]
  std::vector<float> scales, values;
  AlignedVector<float> bias;
  Panels integers, floats;
};

inline ProductWeights MakeWeights(const ProductShape& shape, int bits,
                                  const VectorFunctions& vector, TestRandom& random) {
  ProductWeights weights{{},
                         {},
                         {},
                         {},
                         Panels::OfIntegers(shape.rows, shape.cols, bits),
                         Panels::OfFloats(shape.rows, shape.cols)};
  const int64_t half = int64_t{1} << (bits - 1);
  for (size_t row = 0; row < shape.rows; ++row) {
    std::vector<int16_t> codes(shape.cols);
    std::vector<float> values(shape.cols);
    for (size_t col = 0; col < shape.cols; ++col) {
      codes[col] = static_cast<int16_t>(random.Below(static_cast<uint64_t>(2 * half)) - half);
      values[col] = random.Signed();
    }
    weights.scales.push_back(0.001f * static_cast<float>(row + 1));
    weights.floats.WriteFloats(row, values.data());
    weights.codes.insert(weights.codes.end(), codes.begin(), codes.end());
    weights.values.insert(weights.values.end(), values.begin(), values.end());
  }
  weights.integers =
      Panels::FromCodes(shape.rows, shape.cols, bits, weights.codes, weights.scales, vector);
  weights.bias.resize((shape.rows + 15) / 16 * 16 + 16, 0.0f);
  for (size_t row = 0; row < shape.rows; ++row) weights.bias[row] = random.Signed();
  return weights;
}

}  // namespace kinglet::cpu

#endif  // KINGLET_TESTS_KERNELS_CPU_PRODUCT_WEIGHTS_H_
