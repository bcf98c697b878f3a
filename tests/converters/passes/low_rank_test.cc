#include "converters/passes/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "converters/checkpoints/npy.h"
#include "converters/passes/reconstruction.h"

namespace kinglet::low_rank_test {
namespace {

// A matrix and its singular values by numpy.linalg.svd (tests/data/low_rank/make_fixtures.py).
struct Fixture {
  Shape shape;
  std::vector<float> values;
  std::vector<double> singular_values;

  // The relative error of the best approximation of a rank (Eckart & Young 1936).
  double ErrorOf(uint64_t rank) const {
    double all = 0, excluded = 0;
    for (uint64_t i = 0; i < singular_values.size(); ++i) {
      all += singular_values[i] * singular_values[i];
      if (i >= rank) excluded += singular_values[i] * singular_values[i];
    }
    return std::sqrt(excluded / all);
  }
};

Fixture Load(const std::string& name) {
  const std::string path = std::string(KINGLET_TEST_DATA) + "/low_rank/" + name;
  const Result<NpyArray> matrix = ReadNpy(path + ".npy");
  const Result<NpyArray> values = ReadNpy(path + "_singular_values.npy");
  EXPECT_TRUE(matrix.ok() && values.ok());
  if (!matrix.ok() || !values.ok()) return {};
  return {matrix->shape, std::get<std::vector<float>>(matrix->values),
          std::get<std::vector<double>>(values->values)};
}

TEST(FactoriseToRank, EqualsNumpy) {
  for (const char* name : {"falling", "wide", "rank3"}) {
    const Fixture fixture = Load(name);
    const uint64_t most = std::min(Rows(fixture.shape), Cols(fixture.shape));
    for (uint64_t rank = 1; rank <= most; ++rank) {
      const Result<LowRank> found = FactoriseToRank(fixture.values, fixture.shape, rank, 1);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(found->rank, rank);
      ASSERT_EQ(found->table.size(), Rows(fixture.shape) * rank);
      ASSERT_EQ(found->projection.size(), Cols(fixture.shape) * rank);
      ASSERT_EQ(found->singular_values.size(), most);
      const double largest = fixture.singular_values[0];
      for (uint64_t i = 0; i < most; ++i) {
        EXPECT_NEAR(found->singular_values[i], fixture.singular_values[i], 3e-8 * largest);
      }
      // float32 factors add about 1e-7.
      EXPECT_NEAR(Compare(fixture.values, fixture.shape, *found).relative_error,
                  fixture.ErrorOf(rank), 2e-7)
          << name << ", rank " << rank;
    }
  }
}

TEST(FactoriseToRank, TheProjectionIsOrthonormal) {
  const Fixture fixture = Load("falling");
  const Result<LowRank> found = FactoriseToRank(fixture.values, fixture.shape, 9, 1);
  ASSERT_TRUE(found.ok());
  for (uint64_t a = 0; a < 9; ++a) {
    double largest = 0;
    for (uint64_t b = 0; b < 9; ++b) {
      double product = 0;
      for (uint64_t col = 0; col < 24; ++col) {
        product += double{found->projection[col * 9 + a]} * double{found->projection[col * 9 + b]};
      }
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6);
    }
    for (uint64_t col = 0; col < 24; ++col) {
      const double entry{found->projection[col * 9 + a]};
      if (std::abs(entry) > std::abs(largest)) largest = entry;
    }
    EXPECT_GT(largest, 0);
  }
}

TEST(FactoriseToError, TakesTheSmallestRank) {
  const Fixture fixture = Load("falling");
  for (uint64_t rank = 1; rank <= 24; ++rank) {
    // Just enough, and a little less than that.
    const double error = fixture.ErrorOf(rank);
    const auto enough = FactoriseToError(fixture.values, fixture.shape, error * 1.0001 + 1e-9, 1);
    ASSERT_TRUE(enough.ok());
    EXPECT_EQ(enough->rank, rank);
    const auto less = FactoriseToError(fixture.values, fixture.shape, error * 0.9999, 1);
    ASSERT_TRUE(less.ok());
    EXPECT_EQ(less->rank, std::min<uint64_t>(rank + 1, 24));
  }
  const Fixture rank3 = Load("rank3");
  const auto found = FactoriseToError(rank3.values, rank3.shape, 1e-6, 1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->rank, 3U);
  EXPECT_EQ(FactoriseToError(rank3.values, rank3.shape, 1, 1)->rank, 1U);
  EXPECT_GE(FactoriseToError(rank3.values, rank3.shape, 0, 1)->rank, 3U);
}

// More columns and rows than the tiles that threads take.
TEST(FactoriseToRank, ThreadsDoNotMatter) {
  std::vector<float> values(700 * 150);
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(static_cast<double>(i * i % 1009)));
  }
  const auto one = FactoriseToRank(values, {700, 150}, 10, 1);
  ASSERT_TRUE(one.ok());
  for (const size_t threads : {2U, 3U, 9U}) {
    const auto many = FactoriseToRank(values, {700, 150}, 10, threads);
    ASSERT_TRUE(many.ok());
    EXPECT_EQ(many->table, one->table);
    EXPECT_EQ(many->projection, one->projection);
    EXPECT_EQ(many->singular_values, one->singular_values);
  }
  // The sum of their squares is that of the entries.
  double squares = 0, of_values = 0;
  for (const double value : one->singular_values) of_values += value * value;
  for (const float value : values) squares += double{value} * double{value};
  EXPECT_NEAR(of_values / squares, 1, 1e-12);
}

TEST(FactoriseToRank, ZerosSingleEntriesAndExtremes) {
  const auto zeros = FactoriseToError(std::vector<float>(12), {4, 3}, 0.1, 1);
  ASSERT_TRUE(zeros.ok());
  EXPECT_EQ(zeros->rank, 1U);
  EXPECT_EQ(zeros->table, std::vector<float>(4));
  const auto one = FactoriseToRank(std::vector<float>{-2.5F}, {1, 1}, 1, 4);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->table, std::vector<float>{-2.5F});
  EXPECT_EQ(one->projection, std::vector<float>{1});
  for (const float magnitude : {1e-40F, 1e38F}) {
    const std::vector<float> values = {magnitude, 0, magnitude, 0};
    const auto found = FactoriseToRank(values, {2, 2}, 1, 1);
    ASSERT_TRUE(found.ok());
    EXPECT_NEAR(found->table[0], magnitude, magnitude * 1e-4);
    EXPECT_LT(Compare(values, {2, 2}, *found).relative_error, 1e-4);
  }
  // The norm of a row overflows float32.
  const std::vector<float> huge(4, std::numeric_limits<float>::max());
  EXPECT_EQ(FactoriseToRank(huge, {2, 2}, 1, 1).status().code(), KINGLET_NOT_FINITE);
}

TEST(FactoriseToRank, RefusesWhatItCannotFactorise) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto refusal = [&](const Shape& shape, uint64_t rank, size_t threads) {
    return FactoriseToRank(values, shape, rank, threads).status().message();
  };
  EXPECT_EQ(refusal({2, 3}, 2, 1), "");
  EXPECT_EQ(refusal({2, 3}, 3, 1), "cannot factorise: rank: expected 1 to 2, found 3");
  EXPECT_EQ(refusal({2, 3}, 0, 1), "cannot factorise: rank: expected 1 to 2, found 0");
  EXPECT_EQ(refusal({2, 3}, 1, 0), "cannot factorise: threads: expected at least 1, found 0");
  EXPECT_EQ(refusal({2, 4}, 1, 1), "cannot factorise: values: expected [2, 4] entries, found 6");
  for (const Shape& shape : {Shape{}, {6}, {0, 3}, {2, 0}, {1, kMaxLowRankColumns + 1}}) {
    EXPECT_EQ(refusal(shape, 1, 1),
              "cannot factorise: shape: expected a matrix of 1 to 4096 columns, found " +
                  ShapeText(shape));
  }
  // The number of entries is 6 modulo 2^64.
  EXPECT_NE(refusal({(uint64_t{1} << 63) + 3, 2}, 1, 1), "");
  for (const double error : {-0.1, 1.1, std::nan("")}) {
    EXPECT_EQ(FactoriseToError(values, {2, 3}, error, 1).status().code(), KINGLET_INVALID_ARGUMENT);
  }
  const std::vector<float> hostile = {1, 2, 3, std::numeric_limits<float>::infinity(), 5, 6};
  EXPECT_EQ(FactoriseToRank(hostile, {2, 3}, 1, 1).status().message(),
            "cannot factorise: entry 3: expected a finite number, found inf");
}

}  // namespace
}  // namespace kinglet::low_rank_test
