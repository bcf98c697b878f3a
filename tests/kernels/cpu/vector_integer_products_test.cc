// Products of one matrix with several vectors at once, on every instruction set of this machine,
// compared with exact sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/product.h"
#include "kernels/ref/softmax.h"
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
  for (const int bits : {2, 3, 4, 5, 6, 8, 9, 13}) {
    for (const ProductShape& shape : kProductShapes) {
      const ProductWeights weights = MakeWeights(shape, bits, *functions_, random);
      // Once in one chunk of 32-bit sums, once in chunks as small as they may be, and once with
      // codes that fit in bytes.
      const size_t least = TileCols(CodeFormOf(bits, shape.cols)) / 2;
      struct Codes {
        uint64_t largest;
        size_t chunk;
      };
      for (const auto& [most_code, chunk] : std::vector<Codes>{
               {255, ChunkPairs(bits, 255)}, {255, least}, {127, ChunkPairs(bits, 127)}}) {
        for (const size_t count : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 33u}) {
          std::vector<std::vector<int16_t>> x(count, std::vector<int16_t>(shape.cols));
          std::vector<AlignedVector<float>> y(count);
          std::vector<CodeVector> vectors;
          std::vector<float> largest(count, kGuard);
          for (size_t i = 0; i < count; ++i) {
            for (int16_t& code : x[i]) {
              code = static_cast<int16_t>(static_cast<int>(random.Below(2 * most_code + 1)) -
                                          static_cast<int>(most_code));
            }
            y[i].resize(shape.rows + 1);
            y[i][shape.rows] = kGuard;
            vectors.push_back(
                {x[i].data(), 0.25f * static_cast<float>(i + 1), y[i].data(), nullptr});
            if (shape.rows <= kSumTile && i % 3 != 1) vectors[i].largest = &largest[i];
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
              float expected = static_cast<float>(sum) * (weights.scales[row] * vectors[i].scale);
              if (finish.bias != nullptr) expected += finish.bias[row];
              if (finish.relu) expected = std::max(expected, 0.0f);
              ASSERT_EQ(y[i][row], expected) << bits << " bits, " << shape.rows << "x" << shape.cols
                                             << ", " << i << " of " << count;
            }
            ASSERT_EQ(y[i][shape.rows], kGuard);
            const float most = *std::max_element(y[i].begin(), y[i].end() - 1);
            ASSERT_EQ(largest[i], vectors[i].largest == nullptr ? kGuard : most);
          }
        }
      }
    }
  }
}

// Weights of up to 5 bits have two products with one vector. The faster product needs codes so
// small that differences of neighbours fit in 16 bits. The test has codes at that limit and beyond,
// with the largest differences and weights.
TEST_P(ManyVectors, IntegerProductsAreExactAtTheLimitOfSmallCodes) {
  constexpr size_t kRows = 40, kCols = 37;
  for (const int bits : {2, 3, 4, 5}) {
    const int16_t least = static_cast<int16_t>(-(1 << (bits - 1)));
    std::vector<int16_t> codes(kRows * kCols);
    for (size_t i = 0; i < codes.size(); ++i) {
      codes[i] = i % 7 < 3 ? least : static_cast<int16_t>(-least - 1);
    }
    const Panels panels =
        Panels::FromCodes(kRows, kCols, bits, codes, std::vector<float>(kRows, 1.0f), *functions_);
    const int limit = INT16_MAX / ((1 << bits) + 1);
    for (const int largest : {limit, limit + 1, 2 * limit, 16383, INT16_MAX}) {
      std::vector<int16_t> x(kCols);
      for (size_t i = 0; i < kCols; ++i) {
        x[i] = static_cast<int16_t>(i / 2 % 2 == 0 ? largest : -largest);
      }
      // The last of 17 vectors is multiplied alone.
      for (const size_t count : {1u, 17u}) {
        AlignedVector<float> y(count * kRows);
        std::vector<CodeVector> vectors;
        for (size_t i = 0; i < count; ++i)
          vectors.push_back({x.data(), 1.0f, &y[i * kRows], nullptr});
        functions_->integer_product(panels.code_panels(), vectors.data(), count,
                                    ChunkPairs(bits, largest), Finish{});
        for (size_t i = 0; i < y.size(); ++i) {
          int64_t sum = 0;
          for (size_t col = 0; col < kCols; ++col) sum += codes[i % kRows * kCols + col] * x[col];
          ASSERT_EQ(y[i], static_cast<float>(sum)) << bits << " bits, codes to " << largest;
        }
      }
    }
  }
}

// Integers times a scale and a rest are the same biases as their floats. Rows are more than a
// tile, and vectors more than one group.
TEST_P(ManyVectors, IntegerBiasesAddWhatTheirFloatsAdd) {
  constexpr float kDivisor = 37.0f, kUnit = 1 / kDivisor;
  const auto rest = static_cast<float>(1 / double{kDivisor} - double{kUnit});
  TestRandom random(3);
  for (const ProductShape shape : {ProductShape{2100, 4}, {2048, 3}, {1041, 4}, {70, 33}}) {
    const ProductWeights weights = MakeWeights(shape, 9, *functions_, random);
    AlignedVector<int16_t> integers(weights.bias.size());
    for (int16_t& integer : integers) integer = static_cast<int16_t>(random.Below(511)) - 255;
    std::vector<int16_t> x(shape.cols);
    for (int16_t& code : x) code = static_cast<int16_t>(random.Below(511)) - 255;
    for (const size_t count : {1u, 2u, 3u, 4u, 5u, 9u}) {
      std::vector<AlignedVector<float>> y(count);
      std::vector<CodeVector> vectors;
      for (size_t i = 0; i < count; ++i) {
        y[i].resize(shape.rows);
        vectors.push_back({x.data(), 0.25f * static_cast<float>(i + 1), y[i].data(), nullptr});
      }
      functions_->integer_product(weights.integers.code_panels(), vectors.data(), count,
                                  ChunkPairs(9, 255),
                                  {nullptr, count % 2 == 1, {integers.data(), kUnit, rest}});
      for (size_t row = 0; row < shape.rows; ++row) {
        int64_t sum = 0;
        for (size_t col = 0; col < shape.cols; ++col) {
          sum += int64_t{weights.codes[row * shape.cols + col]} * x[col];
        }
        for (size_t i = 0; i < count; ++i) {
          const float product = static_cast<float>(sum) * (weights.scales[row] * vectors[i].scale);
          const float sum_with_bias = product + static_cast<float>(integers[row]) / kDivisor;
          ASSERT_EQ(y[i][row], count % 2 == 1 ? std::max(sum_with_bias, 0.0f) : sum_with_bias)
              << "row " << row << ", " << shape.cols << " columns, " << i << " of " << count;
        }
      }
    }
  }
}

// For a matrix of four columns, the product also finds the largest element.
TEST_P(ManyVectors, LargestElementIsThatOfTheReference) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Case {
    const char* name;
    float everywhere;
    size_t row;
    float there;
  };
  for (const size_t rows : {1u, 15u, 16u, 40u, 1023u, 1024u}) {
    const Case cases[] = {
        {"NaN first", 1.0f, 0, kNaN},
        {"NaN last", 1.0f, rows - 1, kNaN},
        {"infinity", 1.0f, rows / 2, kInfinity},
        {"-infinity", -kInfinity, rows - 1, -kInfinity},
        {"-0 first", 0.0f, 0, -0.0f},
        {"0 first", -0.0f, 0, 0.0f},
        {"-0 among less", -1.0f, rows / 2, -0.0f},
    };
    for (const Case& c : cases) {
      // The products are -0, so that the bias alone is the result, with its sign.
      Panels panels = Panels::FromCodes(rows, 4, 9, std::vector<int16_t>(rows * 4),
                                        std::vector<float>(rows, -1.0f), *functions_);
      AlignedVector<float> bias(rows + kPanelRows);
      std::fill(bias.begin(), bias.end(), kGuard);
      std::fill_n(bias.begin(), rows, c.everywhere);
      bias[c.row] = c.there;
      for (const size_t count : {1u, 3u, 4u, 7u}) {
        const int16_t x[4] = {1, 2, 3, 4};
        std::vector<std::vector<float>> y(count, std::vector<float>(rows));
        std::vector<float> largest(count);
        std::vector<CodeVector> vectors;
        for (size_t i = 0; i < count; ++i) vectors.push_back({x, 1.0f, y[i].data(), &largest[i]});
        functions_->integer_product(panels.code_panels(), vectors.data(), count, ChunkPairs(9, 255),
                                    {bias.data(), false});
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(std::memcmp(y[i].data(), bias.data(), rows * sizeof(float)), 0) << c.name;
          const float expected = ref::Largest(bias.data(), rows);
          EXPECT_EQ(std::bit_cast<uint32_t>(largest[i]), std::bit_cast<uint32_t>(expected))
              << c.name << ", " << rows << " rows, " << i << " of " << count;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, ManyVectors, testing::ValuesIn(VectorTargets()),
                         [](const auto& target) { return std::string(TargetName(target.param)); });

}  // namespace
}  // namespace kinglet::cpu::vector_integer_products_test
