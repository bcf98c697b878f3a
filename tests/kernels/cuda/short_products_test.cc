#include "kernels/cuda/short_products.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/model_builder.h"

namespace kinglet::cuda::short_products_test {
namespace {

TEST(CudaShortProducts, EqualSumsOfProducts) {
  TestRandom random(5);
  for (int trial = 0; trial < 500; ++trial) {
    alignas(16) int16_t w[8];
    alignas(8) uint8_t low[8], high[8];
    const Digits digits = {low, high};
    const bool bytes = trial % 2 == 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      w[i] = static_cast<int16_t>(trial < 4 ? INT16_MIN : static_cast<int>(random.Below(65536)));
      const int code = bytes       ? static_cast<int>(random.Below(256))
                       : trial < 4 ? 32767
                                   : static_cast<int>(random.Below(65535)) - 32767;
      digits.Set(i, code);
      sum += int64_t{w[i]} * code;
    }
    const EightShorts eight = LoadAligned<EightShorts>(w);
    const EightDigits x = EightDigits::Load(digits, 0);
    const int32_t found = bytes ? Product<true>(eight, x) : Product<false>(eight, x);
    EXPECT_EQ(static_cast<uint32_t>(found), static_cast<uint32_t>(sum)) << trial;
    for (uint32_t i = 0; i < 8; ++i) {
      const FourShorts& four = eight.fours[i / 4];
      EXPECT_EQ(four.LowBytes() >> (8 * (i % 4)) & 0xffu, static_cast<uint32_t>(w[i]) & 0xffu);
      EXPECT_EQ(four.Signs() >> (i % 4) & 1u, w[i] < 0 ? 1u : 0u);
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::short_products_test
