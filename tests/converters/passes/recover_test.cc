#include "converters/passes/recover.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::recover_test {
namespace {

// A scale whose low `bits` mantissa bits are zero, as the framework stores it.
float TruncatedScale(TestRandom& random, int bits) {
  const float scale = 0.01F + 0.009F * random.Signed();
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) >> bits << bits);
}

std::vector<int16_t> RandomCodes(TestRandom& random, uint64_t count, int bits) {
  const int n = (1 << (bits - 1)) - 1;
  std::vector<int16_t> codes(count);
  for (int16_t& code : codes) {
    code = static_cast<int16_t>(static_cast<int>(random.Below(2 * n + 1)) - n);
  }
  codes[random.Below(count)] = static_cast<int16_t>(random.Below(2) == 0 ? n : -n);
  return codes;
}

TEST(RecoverRows, FindsWhatWasWrittenForEveryWidth) {
  TestRandom random(1);
  const uint64_t rows = 20, cols = 31;
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    std::vector<int16_t> codes;
    std::vector<float> scales, values;
    for (uint64_t row = 0; row < rows; ++row) {
      scales.push_back(TruncatedScale(random, bits));
      for (const int16_t code : RandomCodes(random, cols, bits)) {
        codes.push_back(code);
        values.push_back(static_cast<float>(code) * scales.back());
      }
    }
    const auto recovered = RecoverRows(values, {rows, cols}, bits);
    ASSERT_TRUE(recovered.has_value()) << bits;
    EXPECT_EQ(recovered->bits, bits);
    EXPECT_EQ(recovered->rule, ScaleRule::kMultiplyPerRow);
    EXPECT_EQ(recovered->codes, codes) << bits;
    EXPECT_EQ(recovered->scales, scales) << bits;
  }
}

TEST(RecoverRows, RowsOfZerosHaveNoScale) {
  const auto recovered = RecoverRows(std::vector<float>{0, -0.0F, 6, 2}, {2, 2}, 3);
  ASSERT_TRUE(recovered.has_value());
  EXPECT_EQ(recovered->scales[0], 0.0F);
  EXPECT_EQ(recovered->codes[0], 0);
  EXPECT_EQ(recovered->scales[1], 2.0F);
  EXPECT_EQ(recovered->codes[2], 3);
}

TEST(RecoverRows, TheLargestMagnitudeMayBeTheLowestCode) {
  // Codes -8 .. 7 at 4 bits and scale 0.25: if the largest magnitude were code 7, other codes would
  // not be integers.
  const std::vector<float> values = {-2.0F, 0.25F, 1.75F, -0.5F};
  const auto recovered = RecoverRows(values, {1, 4}, 4);
  ASSERT_TRUE(recovered.has_value());
  EXPECT_EQ(recovered->codes, (std::vector<int16_t>{-8, 1, 7, -2}));
  EXPECT_EQ(recovered->scales, std::vector<float>{0.25F});
  // A value of equal magnitude above zero is out of range.
  EXPECT_FALSE(RecoverRows(std::vector<float>{2.0F, 0.25F, 1.75F}, {1, 3}, 4).has_value());
}

TEST(RecoverRows, OneDifferentBitIsEnoughToRefuse) {
  TestRandom random(2);
  std::vector<float> values;
  const float scale = TruncatedScale(random, 9);
  for (const int16_t code : RandomCodes(random, 64, 9)) {
    values.push_back(static_cast<float>(code) * scale);
  }
  ASSERT_TRUE(RecoverRows(values, {4, 16}, 9).has_value() ||
              RecoverRows(values, {1, 64}, 9).has_value());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0 || std::abs(values[i]) == 255 * scale) continue;
    std::vector<float> changed = values;
    changed[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(changed[i]) ^ 1U);
    EXPECT_FALSE(RecoverRows(changed, {1, 64}, 9).has_value()) << i;
    EXPECT_FALSE(RecoverWhole(changed, 9).has_value()) << i;
  }
}

TEST(RecoverRows, FloatsAreNotIntegers) {
  TestRandom random(3);
  std::vector<float> values(64);
  for (float& value : values) value = random.Signed();
  EXPECT_FALSE(RecoverRows(values, {4, 16}, 9).has_value());
  EXPECT_FALSE(RecoverRows(std::vector<float>{1e-45F, 3e-45F}, {1, 2}, 9).has_value());
}

TEST(RecoverWhole, OneScaleForRowsWithoutTheLargestCode) {
  const std::vector<float> values = {127 * 0.5F, 0, 3 * 0.5F, 5 * 0.5F};
  EXPECT_FALSE(RecoverRows(values, {2, 2}, 8).has_value());
  const auto recovered = RecoverWhole(values, 8);
  ASSERT_TRUE(recovered.has_value());
  EXPECT_EQ(recovered->rule, ScaleRule::kMultiplyPerTensor);
  EXPECT_EQ(recovered->codes, (std::vector<int16_t>{127, 0, 3, 5}));
  EXPECT_EQ(recovered->scales, std::vector<float>{0.5F});
}

TEST(RecoverDivided, GivesEveryBitBackForEveryWidth) {
  TestRandom random(4);
  for (int bits = kMinBits; bits <= kMaxBits; ++bits) {
    for (int round = 0; round < 20; ++round) {
      // As in the framework, the divisor comes from the float that was the largest.
      const float largest = 0.5F + 0.49F * random.Signed();
      const auto n = static_cast<float>((1 << (bits - 1)) - 1);
      const float divisor = n / largest;
      std::vector<float> values;
      for (const int16_t code : RandomCodes(random, 50, bits)) {
        values.push_back(static_cast<float>(code) / divisor);
      }
      const auto recovered = RecoverDivided(values, bits);
      ASSERT_TRUE(recovered.has_value()) << bits;
      EXPECT_EQ(recovered->rule, ScaleRule::kDividePerTensor);
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(static_cast<float>(recovered->codes[i]) / recovered->scales[0], values[i]);
      }
    }
  }
}

TEST(RecoverDivided, ZerosAndFloats) {
  const auto zeros = RecoverDivided(std::vector<float>{0, -0.0F}, 9);
  ASSERT_TRUE(zeros.has_value());
  EXPECT_EQ(zeros->scales, std::vector<float>{1});
  TestRandom random(5);
  std::vector<float> values(64);
  for (float& value : values) value = random.Signed();
  EXPECT_FALSE(RecoverDivided(values, 9).has_value());
  EXPECT_FALSE(RecoverDivided(std::vector<float>{1e-44F, 1e-45F}, 9).has_value());
  EXPECT_FALSE(RecoverDivided(std::vector<float>{3e38F, 1e38F}, 2).has_value());
}

TEST(RecoverTensor, WhatCannotBeRecoveredStaysAndIsNoted) {
  ModelDraft draft;
  draft.tensors.push_back({"rows", {2, 2}, DenseF32{{255, 1, 510, 4}}, false});
  draft.tensors.push_back({"whole", {2, 2}, DenseF32{{127.5F, 0, 3.5F, 1.0F}}, false});
  draft.tensors.push_back({"bias", {2}, DenseF32{{255.0F / 3.0F, 1.0F / 3.0F}}, false});
  draft.tensors.push_back({"floats", {1, 3}, DenseF32{{0.1F, 0.77F, 0.3333F}}, false});
  draft.tensors.push_back({"float_bias", {3}, DenseF32{{0.1F, 0.77F, 0.3333F}}, false});
  const std::vector<EncodedTensor> before = draft.tensors;
  std::vector<std::string> notes;
  for (EncodedTensor& tensor : draft.tensors) RecoverTensor(9, tensor, notes);
  const auto rule = [&](size_t i) { return std::get<Quantised>(draft.tensors[i].values).rule; };
  EXPECT_EQ(rule(0), ScaleRule::kMultiplyPerRow);
  EXPECT_EQ(rule(1), ScaleRule::kMultiplyPerTensor);
  EXPECT_EQ(rule(2), ScaleRule::kDividePerTensor);
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    EXPECT_EQ(DecodedValues(draft.tensors[i]), DecodedValues(before[i])) << i;
  }
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0],
            "floats stays float32: its values are not integers of 9 bits with a common scale per "
            "row or tensor");
  EXPECT_EQ(notes[1],
            "float_bias stays float32: its values are not integers of 9 bits with a common "
            "divisor");
}

}  // namespace
}  // namespace kinglet::recover_test
