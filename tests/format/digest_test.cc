#include "format/digest.h"

#include <gtest/gtest.h>

#include <string_view>

namespace kinglet::digest_test {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// Expected values: xxHash's own command, xxhsum -H3 and xxhsum -H2.
TEST(DigestTest, EqualsXxhsum) {
  EXPECT_EQ(HexText(Digest64(Bytes(""))), "2d06800538d394c2");
  EXPECT_EQ(HexText(DigestOf(Bytes(""))), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(HexText(Digest64(Bytes("abc"))), "78af5f94892f3950");
  EXPECT_EQ(HexText(DigestOf(Bytes("abc"))), "06b05ab6733a618578af5f94892f3950");
}

TEST(DigestTest, PiecesGiveTheSameDigestAsTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  for (size_t piece : {1, 7, 240, 241, 1024, 5000}) {
    DigestStream stream;
    for (size_t at = 0; at < text.size(); at += piece) {
      stream.Add(Bytes(std::string_view(text).substr(at, piece)));
    }
    EXPECT_EQ(stream.Finish(), DigestOf(Bytes(text)));
  }
  EXPECT_EQ(DigestStream().Finish(), DigestOf(Bytes("")));
}

}  // namespace
}  // namespace kinglet::digest_test
