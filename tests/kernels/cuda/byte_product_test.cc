// Tiles of bytes as the emulated tensor core multiplies them, against plain sums.
#include "kernels/cuda/byte_product.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::cuda::byte_product_test {
namespace {

struct Tiles {
  uint8_t a[kTileRows][kTileDepth];
  uint8_t b[kTileDepth][kTileStreams];
};

template <bool kSigned>
int32_t ValueOf(uint8_t byte) {
  return kSigned ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
}

// The entries of a thread, written out a second time from the comment of byte_product.h.
template <bool kSignedA, bool kSignedB>
void Check(const Tiles& tiles, int32_t start) {
  PerThread<TileA> a;
  PerThread<TileB> b;
  PerThread<TileD> d;
  for (uint32_t thread = 0; thread < kWarpThreads; ++thread) {
    const uint32_t g = thread / 4, t = thread % 4;
    a[thread] = {};
    b[thread] = {};
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t at = 8 * i;
      a[thread].registers[0] |= uint32_t{tiles.a[g][4 * t + i]} << at;
      a[thread].registers[1] |= uint32_t{tiles.a[g + 8][4 * t + i]} << at;
      a[thread].registers[2] |= uint32_t{tiles.a[g][16 + 4 * t + i]} << at;
      a[thread].registers[3] |= uint32_t{tiles.a[g + 8][16 + 4 * t + i]} << at;
      b[thread].registers[0] |= uint32_t{tiles.b[4 * t + i][g]} << at;
      b[thread].registers[1] |= uint32_t{tiles.b[16 + 4 * t + i][g]} << at;
      d[thread].sums[i] = start;
    }
  }
  MultiplyTiles<kSignedA, kSignedB>(Warp(0), a, b, d);
  for (uint32_t thread = 0; thread < kWarpThreads; ++thread) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = TileRow(thread, i), stream = TileStream(thread, i);
      int32_t sum = start;
      for (uint32_t k = 0; k < kTileDepth; ++k) {
        sum += ValueOf<kSignedA>(tiles.a[row][k]) * ValueOf<kSignedB>(tiles.b[k][stream]);
      }
      EXPECT_EQ(d[thread].sums[i], sum) << "row " << row << ", stream " << stream;
    }
  }
}

void CheckAllSigns(const Tiles& tiles) {
  for (const int32_t start : {0, -1000000, 1 << 30}) {
    Check<true, true>(tiles, start);
    Check<true, false>(tiles, start);
    Check<false, true>(tiles, start);
    Check<false, false>(tiles, start);
  }
}

TEST(ByteProduct, EqualsPlainSums) {
  TestRandom random(5);
  Tiles tiles{};
  for (auto& row : tiles.a) {
    for (uint8_t& byte : row) byte = static_cast<uint8_t>(random.Below(256));
  }
  for (auto& row : tiles.b) {
    for (uint8_t& byte : row) byte = static_cast<uint8_t>(random.Below(256));
  }
  CheckAllSigns(tiles);
}

TEST(ByteProduct, OfTheLargestBytes) {
  for (const uint8_t a : {uint8_t{0x7f}, uint8_t{0x80}, uint8_t{0xff}}) {
    for (const uint8_t b : {uint8_t{0x7f}, uint8_t{0x80}, uint8_t{0xff}}) {
      Tiles tiles{};
      for (auto& row : tiles.a) std::fill(std::begin(row), std::end(row), a);
      for (auto& row : tiles.b) std::fill(std::begin(row), std::end(row), b);
      CheckAllSigns(tiles);
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::byte_product_test
