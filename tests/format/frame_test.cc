#include "format/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kinglet::frame_test {
namespace {

FileFrame Example() { return {0x1122334455667788, 0x99, {0x0102030405060708, 0x1112131415161718}}; }

int At(const std::array<std::byte, kFrameBytes>& bytes, size_t i) {
  return static_cast<int>(bytes[i]);
}

TEST(FrameTest, HasTheDocumentedBytes) {
  const auto bytes = EncodeFrame(Example());
  const std::vector<int> start = {'K',  'G',  'L',  '1',  0x0D, 0x0A, 0x1A, 0x0A, 1,
                                  0,    0,    0,    0,    0,    0,    0,    0x88, 0x77,
                                  0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x99, 0};
  for (size_t i = 0; i < start.size(); ++i) EXPECT_EQ(At(bytes, i), start[i]) << i;
  EXPECT_EQ(At(bytes, 32), 0x08);
  EXPECT_EQ(At(bytes, 39), 0x01);
  EXPECT_EQ(At(bytes, 40), 0x18);
  EXPECT_EQ(At(bytes, 47), 0x11);
  for (size_t i = 48; i < 56; ++i) EXPECT_EQ(At(bytes, i), 0);
}

TEST(FrameTest, ReadsWhatItWrites) {
  FileFrame frame = Example();
  frame.file_size = 4096;
  const auto bytes = EncodeFrame(frame);
  const Result<FileFrame> read = DecodeFrame("x", bytes, 4096);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->file_size, 4096u);
  EXPECT_EQ(read->header_size, 0x99u);
  EXPECT_EQ(read->header_digest, frame.header_digest);
}

// Changes bytes and repairs the frame's digest.
std::array<std::byte, kFrameBytes> Edited(uint64_t file_size, uint64_t header_size, size_t at,
                                          int value) {
  auto bytes = EncodeFrame({file_size, header_size, {}});
  bytes[at] = static_cast<std::byte>(value);
  uint64_t digest = Digest64(std::span(bytes).first(56));
  for (size_t i = 56; i < 64; ++i, digest >>= 8) bytes[i] = static_cast<std::byte>(digest);
  return bytes;
}

TEST(FrameTest, RefusesWhatItCannotRead) {
  const auto good = EncodeFrame({100, 36, {}});
  ASSERT_TRUE(DecodeFrame("x", good, 100).ok());
  EXPECT_EQ(DecodeFrame("x", std::span(good).first(63), 63).status().message(),
            "x: frame: expected at least 64 bytes, found 63 bytes");
  EXPECT_EQ(DecodeFrame("x", {}, 0).status().message(),
            "x: frame: expected at least 64 bytes, found 0 bytes");
  const std::array jpeg = {std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};
  EXPECT_EQ(DecodeFrame("x", jpeg, 3).status().message(),
            "x: frame, byte 0: expected a model file of `kinglet convert`, 4B 47 4C 31 0D 0A 1A "
            "0A, found FF D8 FF");
  EXPECT_EQ(DecodeFrame("x", good, 99).status().message(),
            "x: file size: expected 100 bytes, found 99 bytes");
  EXPECT_EQ(DecodeFrame("x", Edited(100, 37, 0, 'K'), 100).status().message(),
            "x: frame, header size: expected at most 36 bytes, found 37 bytes");
  EXPECT_EQ(DecodeFrame("x", Edited(100, 36, 0, 'P'), 100).status().code(), KINGLET_CORRUPT);
  for (size_t unused : {12, 15, 48, 55}) {
    const Status status = DecodeFrame("x", Edited(100, 36, unused, 1), 100).status();
    EXPECT_EQ(status.code(), KINGLET_CORRUPT) << unused;
    EXPECT_NE(status.message().find("zeros"), std::string::npos);
  }
  const Status version = DecodeFrame("x", Edited(100, 36, 8, 2), 100).status();
  EXPECT_EQ(version.code(), KINGLET_UNSUPPORTED_VERSION);
  EXPECT_EQ(version.message(), "x: frame, byte 8: expected format version 1, found 2");
}

TEST(FrameTest, RefusesHugeClaims) {
  const auto bytes = EncodeFrame({~uint64_t{0}, ~uint64_t{0}, {}});
  EXPECT_EQ(DecodeFrame("x", bytes, ~uint64_t{0}).status().code(), KINGLET_CORRUPT);
  EXPECT_EQ(DecodeFrame("x", bytes, 64).status().code(), KINGLET_CORRUPT);
}

TEST(FrameTest, SegmentsStartAtMultiplesOf64) {
  EXPECT_EQ(NextSegmentOffset(0), 0u);
  EXPECT_EQ(NextSegmentOffset(1), 64u);
  EXPECT_EQ(NextSegmentOffset(64), 64u);
  EXPECT_EQ(NextSegmentOffset(65), 128u);
}

}  // namespace
}  // namespace kinglet::frame_test
