#include "converters/passes/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "converters/passes/reconstruction.h"
#include "format/bitpack.h"
#include "tests/support/model_builder.h"

namespace kinglet::quantise_test {
namespace {

std::vector<float> RandomValues(uint64_t count, uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

// Rounds half to even in double, independently of the functions under test.
double RoundHalfEven(double x) {
  const double down = std::floor(x), rest = x - down;
  if (rest != 0.5) return rest < 0.5 ? down : down + 1;
  return std::fmod(down, 2) == 0 ? down : down + 1;
}

TEST(SymmetricLevels, AreThePublishedOnes) {
  EXPECT_EQ(SymmetricLevels(2), 1);
  EXPECT_EQ(SymmetricLevels(8), 127);
  EXPECT_EQ(SymmetricLevels(9), 255);
  EXPECT_EQ(SymmetricLevels(16), 32767);
}

TEST(ClearLowMantissaBits, KeepsTheRest) {
  EXPECT_EQ(ClearLowMantissaBits(1.0F, 16), 1.0F);
  const float all_ones = std::bit_cast<float>(0x3FFFFFFFU);
  EXPECT_EQ(std::bit_cast<uint32_t>(ClearLowMantissaBits(all_ones, 9)), 0x3FFFFE00U);
  EXPECT_EQ(std::bit_cast<uint32_t>(ClearLowMantissaBits(-all_ones, 2)), 0xBFFFFFFCU);
}

TEST(QuantiseRows, FollowsTheFrameworkForEveryWidth) {
  const Shape shape = {7, 33};
  const std::vector<float> values = RandomValues(7 * 33, 3);
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    const Quantised quantised = QuantiseRows(values, shape, bits);
    EXPECT_EQ(quantised.bits, bits);
    EXPECT_EQ(quantised.rule, ScaleRule::kMultiplyPerRow);
    ASSERT_EQ(quantised.scales.size(), 7U);
    const double n = std::pow(2.0, bits - 1) - 1;
    for (uint64_t row = 0; row < 7; ++row) {
      float largest = 0;
      for (uint64_t col = 0; col < 33; ++col) {
        largest = std::max(largest, std::abs(values[row * 33 + col]));
      }
      const auto scale = static_cast<float>(n / double{largest});
      // The stored scale is 1/scale towards zero, with `bits` bits less of mantissa.
      const float stored = quantised.scales[row];
      EXPECT_LE(stored, 1.0F / scale);
      EXPECT_GT(stored, (1.0F / scale) * (1 - std::pow(2.0, bits - 23)));
      EXPECT_EQ(std::bit_cast<uint32_t>(stored) % (1U << bits), 0U);
      int16_t largest_code = 0;
      for (uint64_t col = 0; col < 33; ++col) {
        const int16_t code = quantised.codes[row * 33 + col];
        const float product = values[row * 33 + col] * scale;
        EXPECT_EQ(code, RoundHalfEven(double{product})) << bits << " bits, " << row << ", " << col;
        largest_code = std::max<int16_t>(largest_code, static_cast<int16_t>(std::abs(code)));
        // Exactly representable: code (bits - 1) times scale (24 - bits) has at most 23 bits.
        EXPECT_EQ(double{static_cast<float>(code) * stored},
                  static_cast<double>(code) * double{stored});
      }
      EXPECT_EQ(largest_code, n);
    }
  }
}

TEST(QuantiseRows, HalvesGoToTheEvenCode) {
  // max 127 at 8 bits gives scale 1.
  const std::vector<float> values = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 126.5F};
  const Quantised quantised = QuantiseRows(values, {1, 8}, 8);
  EXPECT_EQ(quantised.codes, (std::vector<int16_t>{127, 0, 2, 2, 0, -2, -2, 126}));
  EXPECT_EQ(quantised.scales[0], 1.0F);
}

TEST(QuantiseRows, RowsOfZerosAndOfNextToNothing) {
  const std::vector<float> values = {0, -0.0F, 1e-40F, -1e-42F, 2, -1};
  for (const int bits : {2, 9, 16}) {
    const Quantised quantised = QuantiseRows(values, {3, 2}, bits);
    const auto n = static_cast<int16_t>((1 << (bits - 1)) - 1);
    EXPECT_EQ(quantised.scales[0], 0.0F);
    EXPECT_EQ(quantised.scales[1], 0.0F);
    EXPECT_EQ(quantised.codes[2], 0);
    EXPECT_EQ(quantised.codes[4], n);
  }
}

TEST(QuantiseRows, HugeValues) {
  const std::vector<float> values = {3.4e38F, -3.4e38F, 1.0F};
  for (const int bits : {2, 9, 16}) {
    const Quantised quantised = QuantiseRows(values, {1, 3}, bits);
    const float largest = static_cast<float>(quantised.codes[0]) * quantised.scales[0];
    EXPECT_TRUE(std::isfinite(largest)) << bits;
    EXPECT_TRUE(std::isfinite(quantised.scales[0]) && quantised.scales[0] > 0) << bits;
    EXPECT_EQ(quantised.codes[0], -quantised.codes[1]);
  }
}

// The sum of squared errors of a row at a scale.
double SquaredError(std::span<const float> row, double scale, int bits) {
  const double n = std::pow(2.0, bits - 1) - 1;
  double sum = 0;
  for (const float value : row) {
    const double code = std::clamp(RoundHalfEven(double{value} / scale), -n, n);
    sum += (double{value} - scale * code) * (double{value} - scale * code);
  }
  return sum;
}

// Compared with every one of 4,000 scales.
TEST(LeastSquaresScale, IsAsGoodAsTheBestOfManyScales) {
  for (const int bits : {2, 3, 4, 6, 9}) {
    std::vector<float> row = RandomValues(61, static_cast<uint64_t>(bits));
    for (float& value : row) value = value * value * value;  // few large ones
    row[7] = 3;
    row[9] = 0;
    const double largest = 3 / (std::pow(2.0, bits - 1) - 1);
    double best = SquaredError(row, largest, bits);
    const double plain = best;
    for (int i = 1; i < 4000; ++i) {
      best = std::min(best, SquaredError(row, largest * i / 4000, bits));
    }
    const float scale = LeastSquaresScale(row, bits);
    EXPECT_EQ(ClearLowMantissaBits(scale, bits), scale);
    EXPECT_LE(SquaredError(row, scale, bits), 1.02 * best) << bits;
    EXPECT_LE(SquaredError(row, scale, bits), plain) << bits;
    const Quantised quantised = QuantiseRows(row, {1, row.size()}, bits, ScaleBy::kLeastSquares);
    EXPECT_EQ(quantised.scales[0], scale);
    EXPECT_EQ(quantised.codes[9], 0);
    EXPECT_EQ(quantised.codes[7], (1 << (bits - 1)) - 1);
  }
}

TEST(LeastSquaresScale, OfRowsWithoutAChoice) {
  EXPECT_EQ(LeastSquaresScale({}, 4), 0.0F);
  EXPECT_EQ(LeastSquaresScale(std::vector<float>{0, -0.0F}, 4), 0.0F);
  EXPECT_EQ(LeastSquaresScale(std::vector<float>{1e-40F}, 4), 0.0F);
  const std::vector<float> one = {-7};
  EXPECT_EQ(LeastSquaresScale(one, 4), 1.0F);
  const std::vector<float> huge = {3.4e38F, -3.4e38F};
  EXPECT_GT(LeastSquaresScale(huge, 2), 3.3e38F);
}

TEST(QuantisedRows, GivesTheRowsOfQuantiseTensor) {
  for (const ScaleBy by : {ScaleBy::kLargest, ScaleBy::kLeastSquares}) {
    EncodedTensor tensor = {"t", {5, 9}, DenseF32{RandomValues(45, 8)}};
    const std::optional<RowCodes> rows = QuantisedRows(3, tensor, by);
    ASSERT_TRUE(rows);
    EncodedTensor whole = tensor;
    QuantiseTensor(3, whole, by);
    const auto& expected = std::get<Quantised>(whole.values);
    std::vector<int16_t> codes(9);
    for (uint64_t row = 0; row < 5; ++row) {
      EXPECT_EQ(rows->make(row, codes), expected.scales[row]);
      EXPECT_TRUE(std::equal(codes.begin(), codes.end(), expected.codes.begin() + row * 9));
    }
  }
}

TEST(QuantiseDivided, ByLeastSquares) {
  std::vector<float> values = RandomValues(101, 5);
  values[0] = 4;
  const Quantised quantised = QuantiseDivided(values, 3, ScaleBy::kLeastSquares);
  EXPECT_LT(SquaredError(values, 1 / double{quantised.scales[0]}, 3),
            SquaredError(values, 4.0 / 3, 3));
  EXPECT_EQ(quantised.codes[0], 3);
}

TEST(QuantiseDivided, FollowsTheFrameworkForEveryWidth) {
  const std::vector<float> values = RandomValues(101, 5);
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    const Quantised quantised = QuantiseDivided(values, bits);
    EXPECT_EQ(quantised.rule, ScaleRule::kDividePerTensor);
    const double n = std::pow(2.0, bits - 1) - 1;
    ASSERT_EQ(quantised.scales, std::vector<float>{static_cast<float>(n / double{largest})});
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(quantised.codes[i], RoundHalfEven(double{values[i] * quantised.scales[0]}));
    }
  }
}

TEST(QuantiseDivided, ZerosHaveTheDivisorOne) {
  for (const std::vector<float>& values :
       {std::vector<float>{0, 0}, std::vector<float>{1e-45F, 0}}) {
    const Quantised quantised = QuantiseDivided(values, 16);
    EXPECT_EQ(quantised.scales, std::vector<float>{1});
    EXPECT_EQ(quantised.codes, (std::vector<int16_t>{0, 0}));
  }
}

// Decoded values differ by at most half a scale, plus, by rows, the effect of the truncated scale.
TEST(QuantiseRows, ErrorsOfATableAtEveryWidth) {
  const Shape shape = {200, 17};
  const std::vector<float> values = RandomValues(200 * 17, 9);
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    const Quantised quantised = QuantiseRows(values, shape, bits);
    const std::vector<float> decoded = DecodedValues(EncodedTensor{"table", shape, quantised});
    for (uint64_t i = 0; i < values.size(); ++i) {
      const double truncated = std::pow(2.0, bits - 23);
      const double step = double{quantised.scales[i / 17]} * (1 + truncated);
      EXPECT_LE(std::abs(double{decoded[i]} - double{values[i]}),
                0.5001 * step + std::abs(double{values[i]}) * truncated * 1.0001)
          << bits;
    }
  }
}

TEST(QuantiseDivided, ErrorsOfATableAtEveryWidth) {
  const Shape shape = {200, 17};
  const std::vector<float> values = RandomValues(200 * 17, 9);
  double before = 1;
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    const EncodedTensor tensor = {"table", shape, QuantiseDivided(values, bits)};
    const double divisor{std::get<Quantised>(tensor.values).scales[0]};
    const std::vector<float> decoded = DecodedValues(tensor);
    for (uint64_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(std::abs(double{decoded[i]} - double{values[i]}), 0.5001 / divisor) << bits;
    }
    const Reconstruction report = Compare(values, tensor);
    EXPECT_LT(report.relative_error, before * 0.6);
    before = report.relative_error;
    const uint64_t codes = PackedBytes(200 * 17, bits);
    EXPECT_GT(report.bytes_after, codes);  // the divisor
    EXPECT_LE(report.bytes_after, codes + 4);
  }
}

// Clearing low mantissa bits leaves 23 - bits of them in a scale. From 13 bits on that costs more
// than the wider code gains: at 16 bits the error is larger than at 9.
TEST(QuantiseRows, IsMostAccurateAtTwelveBits) {
  const Shape shape = {200, 64};
  const std::vector<float> values = RandomValues(200 * 64, 10);
  std::vector<double> errors(kMaxBits + 1);
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    errors[bits] = Compare(values, {"", shape, QuantiseRows(values, shape, bits)}).relative_error;
  }
  for (int bits = kMinBits; bits < 11; ++bits) EXPECT_GT(errors[bits], errors[bits + 1]);
  for (int bits = 12; bits < kMaxBits; ++bits) EXPECT_LT(errors[bits], errors[bits + 1]);
  EXPECT_GT(errors[16], errors[9]);
}

TEST(QuantiseTensor, MatricesByRowsAndVectorsByOneDivisor) {
  EncodedTensor matrix = {"m", {2, 3}, DenseF32{{1, 2, 3, -4, 5, 6}}, false};
  EncodedTensor vector = {"v", {3}, DenseF32{{1, 2, 3}}, false};
  EncodedTensor half = {"h", {1}, DenseF16{{0}}, false};
  for (EncodedTensor* tensor : {&matrix, &vector, &half}) QuantiseTensor(5, *tensor);
  EXPECT_EQ(std::get<Quantised>(matrix.values).rule, ScaleRule::kMultiplyPerRow);
  EXPECT_EQ(std::get<Quantised>(vector.values).rule, ScaleRule::kDividePerTensor);
  EXPECT_TRUE(std::holds_alternative<DenseF16>(half.values));
}

// Codes made row by row equal the codes of the complete matrix, also for rows of zeros or tiny
// values.
TEST(QuantisedRows, AreTheRowsOfTheMatrix) {
  std::vector<float> values = RandomValues(7 * 33, 11);
  std::fill_n(values.begin() + 33, 33, 0.0F);
  std::fill_n(values.begin() + 2 * 33, 33, 1e-40F);
  EncodedTensor tensor = {"m", {7, 33}, DenseF32{values}, false};
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    const Quantised whole = QuantiseRows(values, tensor.shape, bits);
    const std::optional<RowCodes> rows = QuantisedRows(bits, tensor);
    ASSERT_TRUE(rows.has_value());
    EXPECT_EQ(rows->bits, bits);
    for (uint64_t row = 0; row < 7; ++row) {
      std::vector<int16_t> codes(33, 99);
      EXPECT_EQ(rows->make(row, codes), whole.scales[row]);
      EXPECT_TRUE(std::equal(codes.begin(), codes.end(),
                             whole.codes.begin() + static_cast<ptrdiff_t>(row * 33)));
    }
  }
  tensor.shape = {7 * 33};
  EXPECT_FALSE(QuantisedRows(9, tensor).has_value());
}

}  // namespace
}  // namespace kinglet::quantise_test
