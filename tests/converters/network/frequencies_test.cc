#include "converters/network/frequencies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kinglet::frequencies_test {
namespace {

// Of float32's rounding, a few units in the last place.
constexpr double kRelative = 4e-7;

TEST(Frequencies, AreThoseOfTheFrameworks) {
  for (const uint32_t width : {4U, 6U, 16U, 64U, 1024U}) {
    const std::vector<float> fairseq = FairseqFrequencies(width);
    const std::vector<float> transformer_xl = TransformerXlFrequencies(width);
    ASSERT_EQ(fairseq.size(), width / 2);
    ASSERT_EQ(transformer_xl.size(), width / 2);
    EXPECT_EQ(fairseq[0], 1);
    EXPECT_EQ(transformer_xl[0], 1);
    EXPECT_NEAR(double{fairseq.back()}, 1e-4, 1e-10);
    for (uint32_t j = 0; j < width / 2; ++j) {
      const double expected = std::pow(10000.0, -2.0 * j / width);
      EXPECT_NEAR(double{transformer_xl[j]}, expected, kRelative * expected);
    }
  }
  EXPECT_EQ(TransformerXlFrequencies(2), std::vector<float>{1});
  EXPECT_TRUE(TransformerXlFrequencies(0).empty());
}

TEST(Sinusoids, AreRoundedToFloat) {
  const std::vector<float> table = SinusoidTable(3, 4);
  ASSERT_EQ(table.size(), 12u);
  EXPECT_EQ(table[0], 0.0f);
  EXPECT_EQ(table[1], 1.0f);
  EXPECT_FLOAT_EQ(table[4], std::sin(1.0f));
  EXPECT_FLOAT_EQ(table[5], std::cos(1.0f));
  EXPECT_FLOAT_EQ(table[10], std::sin(0.02f));
  EXPECT_EQ(SinusoidFrequencies(4).size(), 2u);
}

}  // namespace
}  // namespace kinglet::frequencies_test
