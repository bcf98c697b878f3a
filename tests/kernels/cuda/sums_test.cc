// Rule 4 by the threads of a thread block against kernels/ref/sum.h, in both orders of the threads.
#include "kernels/cuda/sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ref/softmax.h"
#include "kernels/ref/sum.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::sums_test {
namespace {

class SumsTest : public ::testing::TestWithParam<Order> {
 protected:
  float SumOf(const std::vector<float>& x) {
    std::vector<float> shared(BlockSumFloats(x.size()));
    const Block block(64, nullptr, GetParam());
    return BlockSum(block, x.size(), shared.data(),
                    [&](float sum, uint64_t i) { return sum + x[i]; });
  }
  float LargestOf(const std::vector<float>& x, bool from_first) {
    std::vector<float> shared(kLargestParts);
    const Block block(64, nullptr, GetParam());
    return BlockLargest(block, x.size(), from_first, shared.data(),
                        [&](uint64_t i) { return x[i]; });
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, SumsTest, ::testing::Values(Order::kForward, Order::kBackward));

TEST_P(SumsTest, EqualTheReferencesBits) {
  for (const uint64_t n : {0, 1, 2, 15, 31, 32, 33, 1023, 1024, 1025, 2049, 5000, 9217}) {
    CaseBuilder builder("sum", n + 1);
    const std::vector<float> x = builder.RandomFloats(n, Fill::kRandom);
    EXPECT_EQ(SumOf(x), ref::Sum(x.data(), n)) << n;
  }
}

TEST_P(SumsTest, FoldNeighboursFirst) {
  for (uint64_t n = 1; n <= 70; ++n) {
    CaseBuilder builder("fold", n);
    std::vector<float> x = builder.RandomFloats(n, Fill::kRandom);
    ref::PairwiseFold<float> expected;
    for (const float value : x) expected.Push(value);
    EXPECT_EQ(FoldTiles(x.data(), n), expected.Total()) << n;
  }
}

TEST_P(SumsTest, LargestIsTheReferences) {
  for (const uint64_t n : {1, 2, 3, 255, 256, 257, 1000}) {
    CaseBuilder builder("largest", n);
    const std::vector<float> x = builder.RandomFloats(n, Fill::kRandom);
    EXPECT_EQ(LargestOf(x, true), ref::Largest(x.data(), n));
  }
}

TEST_P(SumsTest, ANaNIsTheLargestOnlyWhereItIsFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const uint64_t at : {0, 1, 299, 599}) {
    std::vector<float> x(600, 1.0f);
    x[at] = nan;
    x[300] = 3.0f;
    EXPECT_EQ(std::isnan(LargestOf(x, true)), at == 0) << at;
    EXPECT_EQ(LargestOf(x, false), 3.0f) << at;
  }
}

}  // namespace
}  // namespace kinglet::cuda::sums_test
