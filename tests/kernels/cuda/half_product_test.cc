// Products in half precision against plain sums, and the emulation's traps.
#include "kernels/cuda/half_product.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace kinglet::cuda::half_product_test {
namespace {

struct Factors {
  int32_t a[16][8], b[8][8];
};

PerThread<HalfTileD> Product(const Factors& of) {
  const Warp warp(0);
  PerThread<HalfTileA> a;
  PerThread<HalfPair> b;
  PerThread<HalfTileD> d;
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    const uint32_t g = thread / 4, t = thread % 4;
    for (uint32_t half = 0; half < 2; ++half) {
      const int32_t* const row = of.a[g + 8 * half];
      a[reg].rows[half] = HalfPair::Of(row[2 * t], row[2 * t + 1]);
    }
    b[reg] = HalfPair::Of(of.b[2 * t][g], of.b[2 * t + 1][g]);
  });
  MultiplyHalfTiles(warp, a, b, d);
  return d;
}

TEST(HalfProduct, HasThePlainSums) {
  TestRandom random(1);
  Factors of{};
  for (auto& row : of.a) {
    for (int32_t& x : row) x = static_cast<int32_t>(random.Below(511)) - 255;
  }
  for (uint32_t k = 0; k < 8; ++k) {
    for (int32_t& x : of.b[k])
      x = (static_cast<int32_t>(random.Below(255)) - 127) * (k < 4 ? 64 : 1);
  }
  const PerThread<HalfTileD> d = Product(of);
  for (uint32_t thread = 0; thread < kWarpThreads; ++thread) {
    for (uint32_t i = 0; i < 4; ++i) {
      int32_t sum = 0;
      for (uint32_t k = 0; k < 8; ++k) {
        sum += of.a[TileRow(thread, i)][k] * of.b[k][TileStream(thread, i)];
      }
      EXPECT_EQ(d[thread].sums[i], static_cast<float>(sum));
    }
  }
}

TEST(HalfProductDeathTest, SumsThatWouldNotBeExactTrap) {
  Factors of{};
  of.a[0][0] = of.a[0][1] = of.b[0][0] = of.b[1][0] = 2047;
  EXPECT_EQ(Product(of)[0].sums[0], 2.0f * 2047 * 2047);
  of.b[0][0] = 2049;  // twelve bits
  EXPECT_DEATH(Product(of), "");
  of.b[0][0] = 65536;  // above the largest half
  EXPECT_DEATH(Product(of), "");
  of.b[0][0] = 2048 * 8;
  EXPECT_DEATH(Product(of), "");  // a sum above 2^24
}

}  // namespace
}  // namespace kinglet::cuda::half_product_test
