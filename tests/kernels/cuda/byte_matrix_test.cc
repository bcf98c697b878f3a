// The places of a tile's entries, and products that one thread computes from them.
#include "kernels/cuda/byte_matrix.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/weights.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda::byte_matrix_test {
namespace {

TEST(ByteMatrix, EveryEntryOfATileHasAPlaceOfItsOwn) {
  std::vector<int> seen(kTileBytes);
  for (uint32_t row = 0; row < kTileRows; ++row) {
    for (uint32_t col = 0; col < kTileDepth; ++col) {
      const uint32_t index = TilePlace(row, col).index();
      ASSERT_LT(index, kTileBytes);
      ++seen[index];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(kTileBytes, 1));
}

TEST(ByteMatrix, SignsBecomeBytes) {
  EXPECT_EQ(SignBytes(0), 0u);
  EXPECT_EQ(SignBytes(1), 0x000000ffu);
  EXPECT_EQ(SignBytes(0b1010), 0xff00ff00u);
  EXPECT_EQ(SignBytes(0xf), 0xffffffffu);
}

TEST(ByteMatrix, ProductsOfOneThreadEqualPlainSums) {
  TestRandom random(7);
  constexpr uint32_t kRows = 17;
  for (const auto& [bits, kCols] : {std::pair{3, 33u}, {8, 33u}, {9, 33u}, {15, 33u}, {9, 4u}}) {
    const int32_t limit = 1 << (bits - 1);
    std::vector<int16_t> codes(kRows * kCols), x(kCols);
    for (int16_t& code : codes) {
      code = static_cast<int16_t>(static_cast<int32_t>(random.Below(2 * limit)) - limit);
    }
    for (int16_t& value : x) value = static_cast<int16_t>(random.Below(65536));
    std::vector<float> scales(kRows);
    for (uint32_t row = 0; row < kRows; ++row) scales[row] = 0.001f * static_cast<float>(row + 1);
    const BytePlanes planes = LayOutPlanes(codes, kRows, kCols, bits);
    const ByteMatrix matrix = {
        kRows, kCols, planes.form, planes.low.data(), planes.high.data(), scales.data()};
    for (uint32_t row = 0; row < kRows; ++row) {
      int64_t sum = 0;
      for (uint32_t col = 0; col < kCols; ++col) {
        sum += int64_t{x[col]} * codes[row * kCols + col];
      }
      EXPECT_EQ(matrix.Product(row, x.data(), 0.25f),
                static_cast<float>(sum) * (scales[row] * 0.25f))
          << bits << " bits, row " << row;
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::byte_matrix_test
