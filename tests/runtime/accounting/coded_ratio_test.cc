#include "runtime/accounting/coded_ratio.h"

#include <gtest/gtest.h>

namespace kinglet::coded_ratio_test {
namespace {

CodedShape Shared(uint64_t rows, uint64_t cols, uint64_t positions, uint32_t pool) {
  return {rows, cols, positions, {pool}, cols / positions};
}

CodedShape Unshared(uint64_t rows, uint64_t cols, uint64_t positions, uint32_t pool) {
  return {rows, cols, positions, std::vector<uint32_t>(positions, pool), cols / positions};
}

// Ratios that Chen, Li & Sun 2020 print, to one digit, and their two-digit values.
TEST(RatiosOf, ArePublished) {
  const uint64_t ptb = 10000;
  EXPECT_NEAR(RatiosOf(Shared(ptb, 200, 25, 8)).published, 85.53, 0.005);
  EXPECT_NEAR(RatiosOf(Shared(ptb, 200, 25, 32)).published, 51.12, 0.005);
  EXPECT_NEAR(RatiosOf(Shared(ptb, 650, 50, 32)).published, 82.89, 0.005);
  EXPECT_NEAR(RatiosOf(Shared(ptb, 650, 25, 32)).published, 163.18, 0.005);
  EXPECT_NEAR(RatiosOf(Shared(ptb, 1500, 50, 16)).published, 238.33, 0.005);
  EXPECT_NEAR(RatiosOf(Unshared(17191, 512, 32, 32)).published, 86.17, 0.005);
  EXPECT_NEAR(RatiosOf(Unshared(17191, 512, 128, 128)).published, 16.13, 0.005);
  EXPECT_NEAR(RatiosOf(Unshared(7709, 512, 32, 32)).published, 72.0, 0.05);
  EXPECT_NEAR(RatiosOf(Unshared(7709, 512, 128, 128)).published, 14.1, 0.05);
  EXPECT_NEAR(RatiosOf(Unshared(30522, 768, 128, 32)).published, 36.96, 0.005);
}

TEST(RatiosOf, ThePlainFormulaCountsTheTableAsItIs) {
  EXPECT_NEAR(RatiosOf(Shared(10000, 1500, 50, 16)).plain, 238.17, 0.005);
  // By hand: 32 * 4 * 6 bits of table; 4 * 2 codes of 1 bit and 2 * 2 sub-vectors of 3 floats.
  const CodedRatios unshared = RatiosOf(Unshared(4, 6, 2, 2));
  EXPECT_DOUBLE_EQ(unshared.plain, 768.0 / (8 + 384));
  EXPECT_DOUBLE_EQ(unshared.published, 896.0 / (8 + 384));
  EXPECT_DOUBLE_EQ(RatiosOf(Shared(4, 6, 2, 2)).plain, 768.0 / (8 + 192));
}

// Shu & Nakayama's summed codes: sub-vectors as long as the row.
TEST(RatiosOf, AddedCodes) {
  const CodedShape shape = {267735, 384, 32, std::vector<uint32_t>(32, 16), 384};
  EXPECT_DOUBLE_EQ(RatiosOf(shape).plain, 267735.0 * 384 * 4 / (267735.0 * 16 + 512.0 * 384 * 4));
}

// Slim's pools of different sizes: the largest one determines log2 K.
TEST(RatiosOf, PoolsOfTwoSizes) {
  const CodedShape shape = {10, 4, 2, {4, 3}, 2};
  EXPECT_DOUBLE_EQ(RatiosOf(shape).plain, 32.0 * 40 / (10 * 2 * 2 + 32 * 7 * 2));
}

// A hashed table of 10 x 4 floats has 6 floats and no codes.
TEST(RatiosOf, HashedCodesCostNothing) {
  EXPECT_DOUBLE_EQ(RatiosOf({10, 4, 2, {3}, 2, false}).plain, 40.0 / 6);
  EXPECT_DOUBLE_EQ(RatiosOf({10, 4, 2, {3}, 2, false}).published, 50.0 / 6);
}

TEST(RatiosOf, OneSubVectorNeedsNoCodes) {
  EXPECT_DOUBLE_EQ(RatiosOf({10, 4, 2, {1}, 2}).plain, 20);
}

// Li et al. 2018: the example of figure 1, and the 20 % of the first row of table 1.
TEST(SlimRatio, IsPublished) {
  EXPECT_DOUBLE_EQ(SlimRatio(3, 2, 4), 3.0 / 8);
  EXPECT_DOUBLE_EQ(SlimRatio(20000, 10, 10000), 0.2);
  EXPECT_DOUBLE_EQ(SlimRatio(1000, 10, 10000), 0.01);
}

}  // namespace
}  // namespace kinglet::coded_ratio_test
