// Integer products of the largest codes and the longest rows there may be, against 64-bit sums; and
// the parts that lanes are taken in.
#include "kernels/cuda/product.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/weights.h"

namespace kinglet::cuda {
namespace {

constexpr uint32_t kThreads = 64;

// Every row and vector of one value; y as the kernel gives it.
float ProductOfConstants(uint32_t cols, int bits, int16_t weight, int16_t code, bool fits_int32,
                         uint32_t lanes) {
  const BytePlanes planes = LayOutPlanes(std::vector<int16_t>(cols, weight), 1, cols, bits);
  const float scale = 1.0f;
  std::vector<std::vector<int16_t>> x(lanes, std::vector<int16_t>(cols, code));
  std::vector<std::vector<float>> y(lanes, std::vector<float>(1));
  std::vector<Lane> on(lanes);
  for (uint32_t i = 0; i < lanes; ++i) {
    on[i].scratch = reinterpret_cast<std::byte*>(x[i].data());
    on[i].state = reinterpret_cast<std::byte*>(y[i].data());
  }
  IntegerProduct product{};
  product.matrix.rows = 1;
  product.matrix.cols = cols;
  product.matrix.form = planes.form;
  product.matrix.low = planes.low.data();
  product.matrix.high = planes.high.data();
  product.matrix.scales = &scale;
  product.x.codes = true;
  product.x.step = 1.0f;
  product.x_is_byte = code >= -127 && code <= 127;
  product.fits_int32 = fits_int32;
  product.y = {Space::kState, 0};
  std::vector<std::byte> shared(IntegerProduct::SharedBytes());
  const Block block(kThreads, shared.data());
  for (uint32_t unit = 0; unit < product.Units(lanes, block.warps()); ++unit) {
    const Work work = {on.data(), lanes, unit, block};
    if (lanes <= kTileStreams) {
      RunForFewLanes(product, work);
    } else {
      Run(product, work);
    }
  }
  for (uint32_t i = 1; i < lanes; ++i) EXPECT_EQ(y[i][0], y[0][0]);
  return y[0][0];
}

TEST(IntegerProduct, OfTheLargestCodesIsExact) {
  for (const uint32_t lanes : {1u, 9u}) {
    for (const uint32_t cols : {1u, 31u, 1025u, 32768u}) {
      if (cols > 2000 && lanes > 1) continue;  // the emulation takes its time
      for (const int16_t code : {int16_t{127}, int16_t{255}, int16_t{-16383}, int16_t{-32768}}) {
        const auto sum = [&](int64_t weight) { return static_cast<float>(weight * code * cols); };
        EXPECT_EQ(ProductOfConstants(cols, 8, -128, code, false, lanes), sum(-128));
        EXPECT_EQ(ProductOfConstants(cols, 9, 255, code, false, lanes), sum(255));
        EXPECT_EQ(ProductOfConstants(cols, 9, -256, code, false, lanes), sum(-256));
        EXPECT_EQ(ProductOfConstants(cols, 16, 32767, code, false, lanes), sum(32767));
        EXPECT_EQ(ProductOfConstants(cols, 16, -32768, code, false, lanes), sum(-32768));
      }
    }
  }
}

// 255 * 16383 * 512 is just below 2^31: the parts of the sum, times their powers, are not.
TEST(IntegerProduct, SumsThatFit32BitsStayThere) {
  for (const int16_t code : {int16_t{16383}, int16_t{-16383}}) {
    EXPECT_EQ(ProductOfConstants(512, 9, 255, code, true, 1),
              static_cast<float>(int64_t{255} * code * 512));
    EXPECT_EQ(ProductOfConstants(512, 9, -256, code, true, 20),
              static_cast<float>(int64_t{-256} * code * 512));
  }
}

}  // namespace
}  // namespace kinglet::cuda
