#include "tools/paired_losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::paired_losses_test {
namespace {

// A published table of the 97.5th percentile.
TEST(StudentsT, IsThatOfTheTables) {
  const std::vector<std::pair<uint64_t, double>> table = {
      {9, 2.262157},  {10, 2.228139}, {15, 2.131450},  {20, 2.085963},
      {30, 2.042272}, {60, 2.000298}, {120, 1.979930}, {1000000000, 1.959964}};
  for (const auto& [freedom, value] : table) EXPECT_NEAR(StudentsT(freedom), value, 1e-4);
}

BlockLosses Of(const std::vector<double>& losses) {
  BlockLosses blocks;
  for (const double loss : losses) blocks.Add(loss);
  return blocks;
}

std::vector<double> Noise(size_t count, uint64_t seed) {
  TestRandom random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = 4 + double{random.Signed()};
  return values;
}

TEST(Compare, OfEqualBlocksIsThePairedTest) {
  const std::vector<double> first = Noise(20 * 50, 1), second = Noise(20 * 50, 2);
  std::vector<double> means(20);
  double mean = 0, squares = 0;
  for (size_t i = 0; i < first.size(); ++i) means[i / 50] += (second[i] - first[i]) / 50;
  for (const double value : means) mean += value / 20;
  for (const double value : means) squares += (value - mean) * (value - mean);
  const double half = 2.093024 * std::sqrt(squares / 19 / 20);
  const PairedDifference found = Compare(Of(first), Of(second));
  EXPECT_NEAR(found.mean, mean, 1e-12);
  ASSERT_TRUE(found.interval);
  EXPECT_NEAR(found.interval->low, mean - half, 1e-5);
  EXPECT_NEAR(found.interval->high, mean + half, 1e-5);
  EXPECT_EQ(found.blocks, 20U);
  EXPECT_EQ(found.block_tokens, 50U);
}

// Two models of equal loss: about one interval in twenty misses 0.
TEST(Compare, CoversTheTruthNineteenTimesOfTwenty) {
  int missed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const PairedDifference found =
        Compare(Of(Noise(1013, 2 * seed + 1)), Of(Noise(1013, 2 * seed + 2)));
    missed += found.interval->low > 0 || found.interval->high < 0;
  }
  EXPECT_GE(missed, 8);
  EXPECT_LE(missed, 36);
}

TEST(Compare, LongTextsHaveLongerBlocks) {
  const PairedDifference found = Compare(Of(Noise(50 * 401, 1)), Of(Noise(50 * 401, 1)));
  EXPECT_EQ(found.block_tokens, 150U);
  EXPECT_EQ(found.blocks, 134U);
  EXPECT_EQ(found.mean, 0);
  EXPECT_EQ(found.interval->low, 0);
  EXPECT_EQ(found.interval->high, 0);
}

TEST(Compare, ShortTextsAndImpossibleWordsHaveNoInterval) {
  EXPECT_FALSE(Compare(Of({1}), Of({2})).interval);
  EXPECT_EQ(Compare(Of({1}), Of({2.5})).mean, 1.5);
  EXPECT_FALSE(Compare(Of(Noise(450, 1)), Of(Noise(450, 2))).interval);
  EXPECT_TRUE(Compare(Of(Noise(451, 1)), Of(Noise(451, 2))).interval);
  std::vector<double> impossible = Noise(1000, 2);
  impossible[3] = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(Compare(Of(Noise(1000, 1)), Of(impossible)).interval);
}

}  // namespace
}  // namespace kinglet::paired_losses_test
