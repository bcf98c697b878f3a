// Dot products with rows of every length, against plain sums.
#include "kernels/cuda/dots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/ref/sum.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda::dots_test {
namespace {

constexpr uint64_t kLengths[] = {0, 1, 3, 4, 15, 16, 31, 32, 33, 64, 100, 129, 1024, 1025, 4097};
constexpr uint64_t kCounts[] = {0, 1, 7, 8, 33, 130};

TEST(CudaDots, FloatsAreSummedByTheRule) {
  TestRandom random(1);
  for (const uint64_t n : kLengths) {
    for (const uint64_t count : kCounts) {
      std::vector<float> q(n), rows(n * count), found(count, -1.0f);
      for (float& x : q) x = random.Signed();
      for (float& x : rows) x = random.Signed();
      for (const Order order : {Order::kForward, Order::kBackward}) {
        const Block block(256, nullptr, order);
        BlockRowSums(
            block, count, n,
            [&](float sum, uint64_t row, uint64_t i) {
              return std::fmaf(q[i], rows[row * n + i], sum);
            },
            [&](uint64_t row, float dot) { found[row] = dot; });
        for (uint64_t row = 0; row < count; ++row) {
          const float expected = ref::Dot<float>(
              n, [&](size_t i) { return q[i]; }, [&](size_t i) { return rows[row * n + i]; });
          EXPECT_EQ(found[row], expected) << n << " " << row;
        }
      }
    }
  }
}

void ExpectExact(int32_t largest) {
  TestRandom random(2);
  for (const uint64_t n : kLengths) {
    for (const uint64_t count : kCounts) {
      // Codes of the largest magnitude, mostly of one sign, for sums near the largest possible.
      std::vector<int16_t> q(n, static_cast<int16_t>(largest)), rows(n * count);
      for (int16_t& x : rows) {
        x = static_cast<int16_t>(random.Below(5) == 0 ? -largest : largest);
      }
      std::vector<int64_t> found(count, -1);
      BlockRowIntegers(
          Block(256, nullptr), count, n,
          [&](uint64_t row, uint64_t i) { return int32_t{q[i]} * rows[row * n + i]; },
          [&](uint64_t row, int64_t sum) { found[row] = sum; });
      for (uint64_t row = 0; row < count; ++row) {
        int64_t expected = 0;
        for (uint64_t i = 0; i < n; ++i) expected += int64_t{q[i]} * rows[row * n + i];
        EXPECT_EQ(found[row], expected) << n << " " << row;
      }
    }
  }
}

TEST(CudaDots, CodesAreSummedExactly) {
  ExpectExact(255);
  ExpectExact(32767);
}

}  // namespace
}  // namespace kinglet::cuda::dots_test
