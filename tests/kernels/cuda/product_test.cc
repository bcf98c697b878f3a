// Integer products with the largest codes and the longest rows, against 64-bit sums, and for every
// way in which the work is divided.
#include "kernels/cuda/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/cuda/weights.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda::product_test {
namespace {

constexpr uint32_t kThreads = 256;

// y of the kernel for one row, where all weights are equal, and all codes.
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
  product.x.scale = 1.0f;
  product.x_is_byte = code >= -127 && code <= 127;
  product.fits_int32 = fits_int32;
  product.y = {Space::kState, 0};
  std::vector<std::byte> shared(IntegerProduct::SharedBytes());
  const Block block(kThreads, shared.data());
  for (uint32_t item = 0; item < product.WorkItems(lanes, block.warps()); ++item) {
    Run(product, Work{on.data(), lanes, item, block});
  }
  for (uint32_t i = 1; i < lanes; ++i) EXPECT_EQ(y[i][0], y[0][0]);
  return y[0][0];
}

TEST(IntegerProduct, OfTheLargestCodesIsExact) {
  for (const uint32_t lanes : {1u, 9u}) {
    for (const uint32_t cols : {1u, 31u, 1025u, 32768u}) {
      if (cols > 2000 && lanes > 1) continue;  // the emulation is slow
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

// A product of random codes on some lanes, in both orders of threads and work items, against plain
// sums.
struct Shape {
  uint32_t rows, cols, lanes;
  int bits;
  bool bytes, fits_int32;
  uint32_t misplaced = 0;   // codes before x, so that it is not aligned to 8 bytes
  bool fits_float = false;  // codes are at most 16,383
};
void ExpectPlainSums(const Shape& shape, Order order) {
  const auto [rows, cols, lanes, bits, bytes, fits_int32, misplaced, fits_float] = shape;
  TestRandom random(rows + cols * lanes);
  const auto code_below = [&](uint32_t limit) {
    return static_cast<int16_t>(static_cast<int32_t>(random.Below(2 * limit)) -
                                static_cast<int32_t>(limit));
  };
  std::vector<int16_t> matrix(size_t{rows} * cols);
  for (int16_t& code : matrix) code = code_below(1u << (bits - 1));
  const BytePlanes planes = LayOutPlanes(matrix, rows, cols, bits);
  std::vector<float> scales(rows), bias(rows);
  for (uint32_t row = 0; row < rows; ++row) {
    scales[row] = 0.001f * static_cast<float>(row + 1);
    bias[row] = static_cast<float>(row % 7) - 3.0f;
  }
  std::vector<std::vector<int16_t>> x(lanes, std::vector<int16_t>(cols + misplaced));
  std::vector<std::vector<float>> y(lanes, std::vector<float>(rows));
  std::vector<Lane> on(lanes);
  for (uint32_t i = 0; i < lanes; ++i) {
    for (int16_t& code : x[i]) code = code_below(bytes ? 127 : fits_float ? 16383 : 32767);
    on[i].scratch = reinterpret_cast<std::byte*>(x[i].data());
    on[i].state = reinterpret_cast<std::byte*>(y[i].data());
  }
  IntegerProduct product{};
  product.matrix = {rows, cols, planes.form, planes.low.data(), planes.high.data(), scales.data()};
  product.x.place.offset = misplaced * sizeof(int16_t);
  product.x.codes = true;
  product.x.scale = 0.25f;
  product.x_is_byte = bytes;
  product.fits_int32 = fits_int32;
  product.fits_float = fits_float;
  product.finish.bias = bias.data();
  product.y = {Space::kState, 0};
  std::vector<std::byte> shared(IntegerProduct::SharedBytes());
  const Block block(kThreads, shared.data(), order);
  const uint32_t items = product.WorkItems(lanes, block.warps());
  for (uint32_t i = 0; i < items; ++i) {
    std::fill(shared.begin(), shared.end(), std::byte{0xA5});
    const Work work = {on.data(), lanes, order == Order::kForward ? i : items - 1 - i, block};
    Run(product, work);
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    for (uint32_t row = 0; row < rows; ++row) {
      int64_t sum = 0;
      for (uint32_t col = 0; col < cols; ++col) {
        sum += int64_t{x[lane][misplaced + col]} * matrix[size_t{row} * cols + col];
      }
      const float expected = static_cast<float>(sum) * (scales[row] * 0.25f) + bias[row];
      ASSERT_EQ(y[lane][row], expected) << rows << " x " << cols << ", lane " << lane << " of "
                                        << lanes << ", row " << row << ", " << bits << " bits";
    }
  }
}

// Several warps divide the columns: more warps than column tiles, as many, and a number of tiles
// that is no multiple of the warps. Some work items have several tiles of rows.
TEST(IntegerProduct, OfFewLanesIsTheSameHoweverItsColumnsAreDivided) {
  for (const Order order : {Order::kForward, Order::kBackward}) {
    for (const uint32_t cols : {1u, 33u, 63u, 256u, 257u, 1001u}) {
      for (const uint32_t rows : {1u, 17u, 700u}) {
        if (rows * cols > 50000 && order == Order::kBackward) continue;
        for (const uint32_t lanes : {1u, 3u, 8u}) {
          ExpectPlainSums({rows, cols, lanes, 9, false, cols < 200}, order);
        }
      }
    }
    for (const int bits : {8, 16}) {
      for (const bool bytes : {false, true}) {
        ExpectPlainSums({40, 331, 2, bits, bytes, bits == 8}, order);
        ExpectPlainSums({40, 331, 2, bits, bytes, false, 1}, order);
      }
    }
  }
  ExpectPlainSums({40, 1100, 8, 8, false, true},
                  Order::kBackward);  // more columns than fit for 8 lanes
  ExpectPlainSums({16, 9001, 1, 8, false, false}, Order::kForward);  // more than fit for one lane
  ExpectPlainSums({8200, 70, 1, 8, false, true}, Order::kBackward);  // a launch of its own
}

TEST(IntegerProduct, OfManyLanesIsThatOfEach) {
  for (const Order order : {Order::kForward, Order::kBackward}) {
    for (const uint32_t lanes : {9u, 64u, 65u}) {
      ExpectPlainSums({33, 70, lanes, 9, false, true}, order);
      ExpectPlainSums({17, 259, lanes, 8, lanes == 64, false, lanes == 9 ? 1u : 0u}, order);
    }
    ExpectPlainSums({130, 64, 10, 16, false, false}, order);
    // More columns than fit, divided among eight warps; columns divided among four warps, two, and
    // not divided, with work items of several tiles of rows, of which the last one is not full.
    ExpectPlainSums({20, 1061, 33, 9, false, false}, order);
    ExpectPlainSums({40, 100, 20, 9, false, true}, order);
    ExpectPlainSums({600, 40, 20, 9, true, true}, order);
    ExpectPlainSums({300, 20, 17, 9, false, true}, order);
  }
}

// At most four columns: floats where the sums fit them, else integers; work items of several lanes
// and of several groups of rows.
TEST(IntegerProduct, OfNarrowMatricesIsExact) {
  for (const Order order : {Order::kForward, Order::kBackward}) {
    for (const uint32_t lanes : {1u, 8u, 9u, 65u}) {
      for (const uint32_t cols : {1u, 3u, 4u}) {
        ExpectPlainSums({600, cols, lanes, 9, false, true, 0, true}, order);
        ExpectPlainSums({17, cols, lanes, 16, false, false, 1}, order);
      }
    }
  }
}

// All sums that are 2^24 at most are floats; a sum of zeros is +0, whatever their signs.
TEST(IntegerProduct, OfNarrowMatricesReachesTheLastExactFloat) {
  IntegerProduct product{};
  product.matrix.form = ByteForm::kNarrow;
  product.matrix.cols = 4;
  internal::NarrowVector x{{-16383, -16383, -16383, -16383}, 1.0f};
  for (const bool floats : {true, false}) {
    product.fits_float = floats;
    EXPECT_EQ(internal::NarrowSum(product, {{-256, -256, -256, -256}}, x), 16776192.0f);
    EXPECT_EQ(internal::NarrowSum(product, {{-256, -256, -256, -255}}, x), 16759809.0f);
    EXPECT_FALSE(std::signbit(internal::NarrowSum(product, {{0, 0, 0, 0}}, x)));
  }
}

// A product with few rows has about one work item for each thread block of a small launch, or, for
// more than 8 lanes, about as many work items as keep a device busy.
TEST(IntegerProduct, HasAWorkItemForEveryBlock) {
  const auto items = [](uint32_t rows, uint32_t cols, uint32_t lanes) {
    IntegerProduct product{};
    product.matrix.rows = rows;
    product.matrix.cols = cols;
    return product.WorkItems(lanes, 8);
  };
  EXPECT_EQ(items(256, 1024, 1), 16u);
  EXPECT_EQ(items(512, 1024, 8), 32u);
  EXPECT_EQ(items(768, 1024, 1), 48u);
  EXPECT_EQ(items(768, 1024, 9), 48u);
  EXPECT_EQ(items(768, 1024, 64), 4u * 48);
  EXPECT_EQ(items(768, 1024, 65), 5u * 48);
  EXPECT_EQ(items(768, 1024, 81), 6u * 24);
  EXPECT_EQ(items(768, 1024, 4096), 256u * 6);
  EXPECT_EQ(items(768, 64, 9), 12u);
  EXPECT_EQ(items(256, 32, 1), 2u);
  EXPECT_EQ(items(8192, 1024, 1), 256u);
  EXPECT_EQ(items(8208, 1024, 1), 129u);
}

// 255 * 16383 * 512 is just below 2^31, but the planes' sums times their powers of 256 are not.
TEST(IntegerProduct, SumsThatFit32BitsStayThere) {
  for (const int16_t code : {int16_t{16383}, int16_t{-16383}}) {
    EXPECT_EQ(ProductOfConstants(512, 9, 255, code, true, 1),
              static_cast<float>(int64_t{255} * code * 512));
    EXPECT_EQ(ProductOfConstants(512, 9, -256, code, true, 20),
              static_cast<float>(int64_t{-256} * code * 512));
  }
}

}  // namespace
}  // namespace kinglet::cuda::product_test
