// Some rows of a quantised matrix times a vector of codes, against the product of each row.
#include "kernels/cuda/row_products.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/weights.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda::row_products_test {
namespace {

TEST(CudaRowProducts, EqualTheProductsOfRows) {
  TestRandom random(3);
  for (const int bits : {5, 8, 9, 16}) {
    for (const uint32_t cols : {1u, 4u, 5u, 32u, 33u, 300u}) {
      for (const Order order : {Order::kForward, Order::kBackward}) {
        const uint32_t rows = 1 + random.Below(90);
        std::vector<int16_t> codes(rows * cols), x(cols);
        const auto limit = static_cast<int>(1u << (bits - 1));
        const auto below = [&](int most) {
          return static_cast<int16_t>(static_cast<int>(random.Below(2 * most)) - most);
        };
        for (int16_t& code : codes) code = below(limit);
        for (int16_t& code : x) code = below(16383);
        std::vector<float> scales(rows);
        for (float& scale : scales) scale = 0.001f * static_cast<float>(1 + random.Below(9));
        const BytePlanes planes = LayOutPlanes(codes, rows, cols, bits);
        IntegerProduct product{};
        product.matrix = {rows,         cols, planes.form, planes.low.data(), planes.high.data(),
                          scales.data()};
        product.fits_int32 = false;
        struct alignas(16) Unit {
          std::byte bytes[16];
        };
        std::vector<Unit> memory(internal::BytesOfVector(cols) / sizeof(Unit));
        const Block block(64, memory.data()->bytes, order);
        SharedMemory shared(block);
        const internal::StreamBytes staged = internal::TakeVector(shared, cols);
        for (uint32_t i = 0; i < internal::PaddedColumns(cols, cols); ++i) {
          staged.Set(0, i, i < cols ? x[i] : int16_t{0});
        }
        const uint32_t first = rows > kTileRows ? kTileRows : 0, n = rows - first;
        std::vector<float> found(n, -1.0f);
        internal::MultiplyRows(block, product, staged, 0.25f, first, n,
                               [&](uint32_t i, float y) { found[i] = y; });
        for (uint32_t i = 0; i < n; ++i) {
          EXPECT_EQ(found[i], product.matrix.Product(first + i, x.data(), 0.25f))
              << bits << " bits, " << cols << " columns, row " << first + i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::row_products_test
