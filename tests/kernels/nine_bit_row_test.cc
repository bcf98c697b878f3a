#include "kernels/nine_bit_row.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace kinglet::nine_bit_row_test {
namespace {

// Worked out by hand: two's complement of 9 bits, the ninth in the second part.
TEST(NineBitRow, LowBytesComeBeforeSignBits) {
  const NineBitRow row{11};
  EXPECT_EQ(row.Padded(), 64u);
  ASSERT_EQ(row.Bytes(), 72u);
  const std::array<int, 11> codes = {0, 1, -1, 255, -255, -256, 127, 128, -128, 7, -2};
  std::vector<uint8_t> bytes(72, 0xA5);
  row.Store([&](uint64_t i) { return codes[i]; }, bytes.data());
  std::vector<uint8_t> expected = {0, 1, 0xFF, 0xFF, 0x01, 0x00, 0x7F, 0x80, 0x80, 7, 0xFE};
  expected.resize(72);
  expected[64] = 0b0011'0100;  // codes 2, 4 and 5
  expected[65] = 0b0000'0101;  // codes 8 and 10
  EXPECT_EQ(bytes, expected);
}

TEST(NineBitRow, GivesEveryCodeBackAtEveryPlace) {
  for (const uint64_t count : {1u, 63u, 64u, 65u, 256u}) {
    const NineBitRow row{count};
    std::vector<uint8_t> bytes(row.Bytes());
    for (int first = -256; first <= 255; ++first) {
      const auto code = [&](uint64_t i) { return (first + 256 + static_cast<int>(i)) % 512 - 256; };
      row.Store(code, bytes.data());
      for (uint64_t i = 0; i < row.Padded(); ++i) {
        ASSERT_EQ(row.Code(bytes.data(), i), i < count ? code(i) : 0) << count << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::nine_bit_row_test
