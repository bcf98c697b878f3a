#include "runtime/ngrams/codebook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace kinglet::codebook_test {
namespace {

double ErrorOf(const std::vector<float>& book, const std::vector<float>& values) {
  double error = 0;
  for (const float value : values) {
    error += std::pow(double{book[NearestCode(book, value)]} - double{value}, 2);
  }
  return error;
}

TEST(Codebook, KeepsFewDistinctValues) {
  EXPECT_EQ(ChooseCodebook({3, 1, 3, 2, 1}, 3), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(ChooseCodebook({}, 4).empty());
  EXPECT_EQ(ChooseCodebook({1, 1, 1, 5}, 1), (std::vector<float>{2}));
}

TEST(Codebook, IsAscendingAndNearlyTheBest) {
  std::mt19937 random(1);
  std::normal_distribution<float> draw(-2, 1);
  std::vector<float> values(2000);
  for (float& value : values) value = draw(random);
  for (const size_t size : {1U, 2U, 7U, 64U, 256U}) {
    const std::vector<float> book = ChooseCodebook(values, size);
    EXPECT_LE(book.size(), size);
    EXPECT_TRUE(std::is_sorted(book.begin(), book.end()));
    // The least error of n codes for a normal distribution is near 2.72 / n^2 (Panter and Dite
    // 1951).
    const double least = std::min(1.0, 2.72 / static_cast<double>(size * size));
    EXPECT_LT(ErrorOf(book, values) / 2000, 1.5 * least) << size;
  }
}

TEST(Codebook, NearestOfTwoIsTheLowerOne) {
  const std::vector<float> book = {1, 2, 4};
  EXPECT_EQ(NearestCode(book, 0), 0U);
  EXPECT_EQ(NearestCode(book, 1.5F), 0U);
  EXPECT_EQ(NearestCode(book, 1.6F), 1U);
  EXPECT_EQ(NearestCode(book, 3.1F), 2U);
  EXPECT_EQ(NearestCode(book, 9), 2U);
}

}  // namespace
}  // namespace kinglet::codebook_test
