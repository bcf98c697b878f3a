#include "converters/checkpoints/crc32c.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kinglet::crc32c_test {
namespace {

uint32_t Checksum(const std::string& text) {
  Crc32c crc;
  crc.Add(std::as_bytes(std::span(text)));
  return crc.value();
}

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(Checksum(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Checksum(std::string(32, '\xff')), 0x62a8ab43U);
  std::string ascending, descending;
  for (char c = 0; c < 32; ++c) {
    ascending += c;
    descending += static_cast<char>(31 - c);
  }
  EXPECT_EQ(Checksum(ascending), 0x46dd794eU);
  EXPECT_EQ(Checksum(descending), 0x113fdb5cU);
  EXPECT_EQ(Checksum("123456789"), 0xe3069283U);
  EXPECT_EQ(Checksum(""), 0U);
}

TEST(Crc32c, PiecesOfAnySizeGiveTheSame) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t first = 0; first <= text.size(); first += 7) {
    Crc32c crc;
    crc.Add(bytes.first(first));
    crc.Add(bytes.subspan(first));
    EXPECT_EQ(crc.value(), Checksum(text)) << first;
  }
}

TEST(Crc32c, MaskRotatesAndAdds) {
  Crc32c crc;
  EXPECT_EQ(crc.masked(), 0xa282ead8U);
  crc.Add(std::as_bytes(std::span(std::string_view("123456789"))));
  EXPECT_EQ(crc.masked(), ((0xe3069283U >> 15U) | (0xe3069283U << 17U)) + 0xa282ead8U);
}

}  // namespace
}  // namespace kinglet::crc32c_test
