#include "converters/checkpoints/pickle_input.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/converters/files.h"

namespace kinglet::pickle_input_test {
namespace {

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A StoredPickle of a string that counts how far it was read.
StoredPickle SourceOf(const std::string& content, uint64_t* furthest) {
  return {content.size(), [&content, furthest](uint64_t offset, std::span<std::byte> out) {
            EXPECT_LE(offset + out.size(), content.size());
            *furthest = std::max<uint64_t>(*furthest, offset + out.size());
            std::memcpy(out.data(), content.data() + offset, out.size());
            return Status();
          }};
}

TEST(PickleInput, TakesBytesAndLinesFromMemory) {
  PickleInput input(Bytes("abline\n\nrest"), 100);
  EXPECT_EQ(Text(*input.Take(2)), "ab");
  EXPECT_EQ(*input.TakeLine(), "line");
  EXPECT_EQ(*input.TakeLine(), "");
  EXPECT_EQ(input.position(), 8U);
  EXPECT_EQ(input.remaining(), 4U);
  EXPECT_EQ(input.TakeLine().status().message(),
            "pickle: byte 108: expected a line that ends, found no newline in 4 bytes "
            "(the file is truncated or damaged: copy or download it again)");
  EXPECT_EQ(input.Take(5).status().message(),
            "pickle: byte 108: expected 5 more bytes, found the end at byte 112 "
            "(the file is truncated or damaged: copy or download it again)");
  EXPECT_EQ(input.Take(~uint64_t{0}).status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(Text(*input.Take(4)), "rest");
  EXPECT_EQ(Text(*input.Take(0)), "");
  EXPECT_FALSE(input.TakeLine().ok());
}

TEST(PickleInput, ReadsAFileOnlyAsFarAsAsked) {
  std::string content(1 << 20, 'x');
  content[200000] = '\n';
  uint64_t furthest = 0;
  const StoredPickle source = SourceOf(content, &furthest);
  PickleInput input(source, 0);
  EXPECT_EQ(Text(*input.Take(3)), "xxx");
  EXPECT_LE(furthest, 65536U);
  const Result<std::string_view> line = input.TakeLine();
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->size(), 200000U - 3);
  EXPECT_LE(furthest, 524288U);
  EXPECT_EQ(input.Take(700000)->size(), 700000U);
  EXPECT_FALSE(input.Take(200000).ok());
  EXPECT_EQ(input.remaining(), content.size() - 900001);
}

TEST(PickleInput, PassesOnWhatTheSourceReports) {
  const StoredPickle source = {
      10, [](uint64_t, std::span<std::byte>) { return Status(KINGLET_IO_ERROR, "disk on fire"); }};
  PickleInput input(source, 0);
  EXPECT_EQ(input.Take(1).status().message(), "disk on fire");
  EXPECT_EQ(input.TakeLine().status().message(), "disk on fire");
}

}  // namespace
}  // namespace kinglet::pickle_input_test
