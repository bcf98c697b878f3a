#include "kernels/nine_bit_row.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace kinglet::nine_bit_row_test {
namespace {

// Worked out by hand, in two's complement of 9 bits, of which the ninth is in the second part.
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

TEST(NineBitRow, SetChangesOneCode) {
  const NineBitRow row{70};
  std::vector<uint8_t> bytes(row.Bytes());
  row.Store([](uint64_t i) { return static_cast<int>(i * 37 % 511) - 255; }, bytes.data());
  for (const int code : {-256, -1, 0, 255}) {
    for (const uint64_t at : {0u, 7u, 8u, 63u, 64u, 69u}) {
      const std::vector<uint8_t> before = bytes;
      row.Set(bytes.data(), at, code);
      std::vector<uint8_t> expected(row.Bytes());
      row.Store([&](uint64_t i) { return i == at ? code : row.Code(before.data(), i); },
                expected.data());
      EXPECT_EQ(row.Code(bytes.data(), at), code);
      EXPECT_EQ(bytes, expected) << code << " " << at;
    }
  }
}

// Each byte is in one part of 24 codes, and the parts' codes are those of the row.
TEST(NineBitRow, PartsOfWholeBytesShareNone) {
  const NineBitRow row{72};
  std::vector<uint8_t> bytes(row.Bytes()), expected(row.Bytes());
  std::vector<int> writes(row.Bytes());
  const auto code = [](uint64_t i) { return static_cast<int>(i * 37 % 511) - 255; };
  row.Store(code, expected.data());
  ASSERT_EQ(NineBitRow::PartBytes(24), 27u);
  for (const uint64_t first : {0u, 24u, 48u}) {
    for (uint64_t k = 0; k < 27; ++k) {
      const uint64_t at = row.PartByteAt(first, 24, k);
      bytes[at] = row.Byte(at, code);
      ++writes[at];
    }
  }
  EXPECT_EQ(bytes, expected);
  for (const int count : writes) EXPECT_LE(count, 1);
}

}  // namespace
}  // namespace kinglet::nine_bit_row_test
