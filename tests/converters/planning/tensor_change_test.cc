#include "converters/planning/tensor_change.h"

#include <gtest/gtest.h>

#include <cmath>
#include <variant>
#include <vector>

#include "converters/passes/low_rank.h"
#include "converters/splitmix.h"

namespace kinglet::tensor_change_test {
namespace {

EncodedTensor Matrix() {
  EncodedTensor tensor = {"m", {8, 6}, DenseF32{}};
  SplitMix64 random(3);
  for (int i = 0; i < 48; ++i) {
    const auto word = static_cast<double>(random.Next() >> 11);
    std::get<DenseF32>(tensor.values)
        .values.push_back(static_cast<float>(std::ldexp(word, -53) - 0.5));
  }
  return tensor;
}

double ErrorOf(const EncodedTensor& before, const std::vector<float>& after) {
  const std::vector<float> values = DecodedValues(before);
  double error = 0, all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{values[i]} - after[i], 2);
    all += std::pow(double{values[i]}, 2);
  }
  return std::sqrt(error / all);
}

TEST(Changed, PrunesAndQuantisesAsThePassesDo) {
  const EncodedTensor matrix = Matrix();
  const auto pruned = Changed(matrix, SparsityChange{0.5}, 9);
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->nonzeros, 24U);
  EXPECT_TRUE(pruned->parts[0].pruned);
  EXPECT_NEAR(pruned->relative_error, ErrorOf(matrix, DecodedValues(pruned->parts[0])), 1e-12);
  const auto quantised = Changed(matrix, BitsChange{3}, 9);
  ASSERT_TRUE(quantised.ok());
  EXPECT_EQ(std::get<Quantised>(quantised->parts[0].values).bits, 3);
  EXPECT_NEAR(quantised->relative_error, ErrorOf(matrix, DecodedValues(quantised->parts[0])),
              1e-12);
  EXPECT_EQ(Changed(matrix, SparsityChange{0}, 9)->relative_error, 0);
}

TEST(Changed, CodesBringTheirCodebook) {
  const auto coded = Changed(Matrix(), CodesChange{2, 8}, 9);
  ASSERT_TRUE(coded.ok());
  ASSERT_EQ(coded->parts.size(), 2U);
  EXPECT_EQ(std::get<Coded>(coded->parts[0].values).scheme.codebook, 9U);
  EXPECT_EQ(coded->parts[1].name, "m.codebook");
  EXPECT_EQ(coded->parts[1].shape, (Shape{8, 3}));
  EXPECT_FALSE(Changed(Matrix(), CodesChange{4, 8}, 9).ok());  // 4 does not divide 6 columns
}

TEST(Changed, EachFormOfCodesIsThatOfItsPass) {
  for (const CodeForm form : {CodeForm::kSum, CodeForm::kSlim, CodeForm::kHashed}) {
    const CodesChange change = {2, 8, form};
    const auto coded = Changed(Matrix(), change, 9);
    ASSERT_TRUE(coded.ok());
    const auto& codes = std::get<Coded>(coded->parts[0].values);
    EXPECT_EQ(codes.scheme.combine, form == CodeForm::kSum ? Combine::kSum : Combine::kConcatenate);
    EXPECT_EQ(coded->parts[1].shape, (Shape{8, form == CodeForm::kSum ? 6u : 3u}));
    EXPECT_GT(coded->relative_error, 0);
  }
}

// The error of the best approximation: the singular values that the rank omits.
TEST(Changed, ALowRankIsTheProductOfItsFactors) {
  const EncodedTensor matrix = Matrix();
  const auto low = Changed(matrix, RankChange{2}, 9);
  ASSERT_TRUE(low.ok());
  EXPECT_EQ(low->bytes, sizeof(float) * 2 * (8 + 6));
  EXPECT_NEAR(low->relative_error, ErrorOf(matrix, DecodedValues(low->parts[0])), 1e-12);
  const auto factors = FactoriseToRank(DecodedValues(matrix), {8, 6}, 2, 1);
  double all = 0, left = 0;
  for (size_t i = 0; i < 6; ++i) {
    const double square = std::pow(factors->singular_values[i], 2);
    all += square;
    if (i >= 2) left += square;
  }
  EXPECT_NEAR(low->relative_error, std::sqrt(left / all), 1e-6);
}

TEST(ChangeText, SaysWhat) {
  EXPECT_EQ(ChangeText(SparsityChange{0.5}), "sparsity 0.5");
  EXPECT_EQ(ChangeText(BitsChange{4}), "4 bits");
  EXPECT_EQ(ChangeText(CodesChange{4, 64}), "4 x 64 codes");
  EXPECT_EQ(ChangeText(CodesChange{4, 64, CodeForm::kSum}), "4 x 64 sum codes");
  EXPECT_EQ(ChangeText(RankChange{4}), "rank 4");
}

}  // namespace
}  // namespace kinglet::tensor_change_test
