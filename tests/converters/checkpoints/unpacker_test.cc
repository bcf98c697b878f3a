// The bytes were packed by gzip 1.12 and zstd 1.5.4.
#include "converters/checkpoints/unpacker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/converters/packed_texts.h"

namespace kinglet::unpacker_test {
namespace {

// Unpacks pieces of `piece` bytes into buffers of `room` bytes, and checks whether the end may be
// one.
std::string Unpacked(const std::string& packed, size_t piece, size_t room, bool whole = true) {
  const auto unpacker = Unpacker::For(packed);
  std::string text;
  std::vector<char> out(room);
  for (size_t at = 0; at < packed.size(); at += piece) {
    std::string_view bytes = std::string_view(packed).substr(at, piece);
    while (true) {
      const auto made = unpacker->Unpack(bytes, out);
      if (!made.ok()) return made.status().message();
      text.append(out.data(), *made);
      if (*made < room) break;
    }
    EXPECT_TRUE(bytes.empty());
  }
  EXPECT_EQ(unpacker->at_end(), whole);
  return text;
}

TEST(Unpacker, AllMembersAndFrames) {
  for (const std::string& packed : {PackedByGzip(), PackedByZstd()}) {
    for (const size_t piece : {1, 2, 7, 1000}) {
      for (const size_t room : {1, 3, 1000}) {
        EXPECT_EQ(Unpacked(packed, piece, room), kPackedText);
        EXPECT_EQ(Unpacked(packed + packed, piece, room),
                  std::string(kPackedText) + std::string(kPackedText));
      }
    }
    for (size_t length = 4; length < packed.size(); ++length) {
      Unpacked(packed.substr(0, length), 5, 1000, false);
      Unpacked(packed + packed.substr(0, length), 5, 1000, false);
    }
  }
  // Tape drives add zeros; skippable frames may contain anything.
  EXPECT_EQ(Unpacked(PackedByGzip() + std::string(9, '\0'), 4, 100), kPackedText);
  const std::string skipped("\x5a\x2a\x4d\x18\x02\x00\x00\x00xy", 10);
  EXPECT_EQ(Unpacked(skipped + PackedByZstd(), 4, 100), kPackedText);
}

TEST(Unpacker, DamageIsAnError) {
  for (const std::string& packed : {PackedByGzip(), PackedByZstd()}) {
    std::string damaged = packed;
    damaged[packed.size() - 6] ^= 1;  // the text, or its check
    EXPECT_NE(Unpacked(damaged, 100, 100).find("the file is damaged"), std::string::npos);
    EXPECT_NE(Unpacked(packed + "other", 100, 100).find("the file is damaged"), std::string::npos);
  }
  // The beginning of a file of `zstd --long=30`.
  const std::string wide("\x28\xb5\x2f\xfd\x04\xa0\x64\x00\x00\x10\x00\x00\x02\x00", 14);
  EXPECT_EQ(Unpacked(wide, 100, 100),
            "zstd: unpacking: expected a window of at most 128 MiB, found a larger one (unpack it "
            "with `zstd -dc --long=31`)");
}

TEST(Unpacker, OtherBytesHaveNone) {
  for (const char* head : {"", "\x1f", "text", "\x28\xb5\x2f", "P*M"}) {
    EXPECT_EQ(Unpacker::For(head), nullptr) << head;
  }
}

}  // namespace
}  // namespace kinglet::unpacker_test
