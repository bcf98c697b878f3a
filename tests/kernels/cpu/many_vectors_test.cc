// Products of one matrix with several vectors at once, on every instruction set of this machine.
// Integer products are compared with exact sums; float products with rule 4 of docs/NUMERICS.md
// spelled out here, element by element.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/panels.h"
#include "kernels/cpu/product.h"
#include "tests/support/model_builder.h"

namespace kinglet::cpu::many_vectors_test {
namespace {

constexpr float kGuard = 1234.5f;  // behind each result

struct Shape {
  size_t rows, cols;
};
// Odd ones, whole panels, short sums, and several blocks of a rule-4 sum.
const std::vector<Shape> kShapes = {{1, 1},    {16, 4},   {17, 31},  {33, 32},  {64, 33},
                                    {79, 128}, {131, 77}, {48, 150}, {20, 2100}};

// The dot product as rule 4 has it: lanes of 16, folded, in blocks of 1,024 that fold pairwise.
float OrderedDot(const float* a, const float* x, size_t n) {
  if (n < 32) {
    float sum = 0;
    for (size_t i = 0; i < n; ++i) sum = std::fma(a[i], x[i], sum);
    return sum;
  }
  std::vector<float> blocks;
  for (size_t begin = 0; begin < n; begin += 1024) {
    float lanes[16] = {};
    for (size_t i = begin; i < std::min(n, begin + 1024); ++i) {
      lanes[i % 16] = std::fma(a[i], x[i], lanes[i % 16]);
    }
    for (size_t step = 8; step > 0; step /= 2) {
      for (size_t j = 0; j < step; ++j) lanes[j] += lanes[j + step];
    }
    blocks.push_back(lanes[0]);
  }
  while (blocks.size() > 1) {
    std::vector<float> folded;
    for (size_t i = 0; i + 1 < blocks.size(); i += 2) folded.push_back(blocks[i] + blocks[i + 1]);
    if (blocks.size() % 2 == 1) folded.push_back(blocks.back());
    blocks = std::move(folded);
  }
  return blocks[0];
}

struct Weights {
  std::vector<int16_t> codes;  // [rows][cols]
  std::vector<float> scales, values, bias;
  Panels integers, reals;
};

Weights MakeWeights(const Shape& shape, int bits, const VectorFunctions& vector,
                    TestRandom& random) {
  Weights weights{{},
                  {},
                  {},
                  {},
                  Panels::OfIntegers(shape.rows, shape.cols, bits),
                  Panels::OfReals(shape.rows, shape.cols)};
  const int64_t half = int64_t{1} << (bits - 1);
  for (size_t row = 0; row < shape.rows; ++row) {
    std::vector<int16_t> codes(shape.cols);
    std::vector<float> values(shape.cols);
    for (size_t col = 0; col < shape.cols; ++col) {
      codes[col] = static_cast<int16_t>(random.Below(static_cast<uint64_t>(2 * half)) - half);
      values[col] = random.Signed();
    }
    weights.scales.push_back(0.001f * static_cast<float>(row + 1));
    weights.reals.WriteReals(row, values.data());
    weights.codes.insert(weights.codes.end(), codes.begin(), codes.end());
    weights.values.insert(weights.values.end(), values.begin(), values.end());
  }
  weights.integers =
      Panels::FromCodes(shape.rows, shape.cols, bits, weights.codes, weights.scales, vector);
  weights.bias.resize((shape.rows + 15) / 16 * 16 + 16);
  for (size_t row = 0; row < shape.rows; ++row) weights.bias[row] = random.Signed();
  return weights;
}

class ManyVectors : public testing::TestWithParam<Target> {
 protected:
  const VectorFunctions* functions_ = FindVectorFunctions(GetParam());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ManyVectors);

TEST_P(ManyVectors, IntegerProductsAreExact) {
  TestRandom random(1);
  for (const int bits : {5, 9, 13}) {
    for (const Shape& shape : kShapes) {
      const Weights weights = MakeWeights(shape, bits, *functions_, random);
      // Once in one chunk of 32-bit sums, once in chunks as small as they may be.
      for (const size_t chunk : {ChunkPairs(bits, 255), size_t{2}}) {
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

// `weight(row)` gives a row's values.
template <class Product, class Row>
void CheckReals(const Shape& shape, const std::vector<float>& bias, TestRandom& random,
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

TEST_P(ManyVectors, DecodedProductsKeepTheOrderOfSums) {
  TestRandom random(2);
  for (const int bits : {5, 9, 13}) {
    for (const Shape& shape : kShapes) {
      const Weights weights = MakeWeights(shape, bits, *functions_, random);
      CheckReals(
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

TEST_P(ManyVectors, RealProductsKeepTheOrderOfSums) {
  TestRandom random(3);
  for (const Shape& shape : kShapes) {
    const Weights weights = MakeWeights(shape, 9, *functions_, random);
    CheckReals(
        shape, weights.bias, random,
        [&](const RealVector* vectors, size_t count, const Finish& finish) {
          functions_->real_product(weights.reals.real_panels(), vectors, count, finish);
        },
        [&](size_t row) {
          const auto begin = weights.values.begin() + static_cast<ptrdiff_t>(row * shape.cols);
          return std::vector<float>(begin, begin + static_cast<ptrdiff_t>(shape.cols));
        });
  }
}

std::vector<Target> VectorTargets() {
  std::vector<Target> targets = SupportedTargets();
  std::erase(targets, Target::kScalar);
  return targets;
}
INSTANTIATE_TEST_SUITE_P(EveryTarget, ManyVectors, testing::ValuesIn(VectorTargets()),
                         [](const auto& target) { return std::string(TargetName(target.param)); });

}  // namespace
}  // namespace kinglet::cpu::many_vectors_test
