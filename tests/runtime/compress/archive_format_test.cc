#include "runtime/compress/archive_format.h"

#include <gtest/gtest.h>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::archive_format_test {
namespace {

TEST(ArchiveFormat, HeadersComeBackAndNoFlippedBitDoes) {
  ArchiveHeader archive;
  archive.block_size = 4096;
  archive.model = {3, 5};
  const auto read = ArchiveHeader::Of(archive.Bytes());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->model, archive.model);
  EXPECT_EQ(read->Bytes(), archive.Bytes());

  const BlockHeader block = {BlockKind::kCoded, 4096, 700, 0x123456789ABCDEF0};
  auto bytes = block.Bytes(archive, 7);
  for (const uint64_t least : {0, 3, 7}) {
    const auto found = BlockHeader::Of(bytes, archive, least);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->number, 7u);
    EXPECT_EQ(found->header.size, 700u);
    EXPECT_EQ(found->header.digest, block.digest);
  }
  EXPECT_FALSE(BlockHeader::Of(bytes, archive, 8));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto found = BlockHeader::Of(bytes, archive, 7);
    EXPECT_TRUE(!found || found->number != 7) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  ArchiveHeader other = archive;
  other.block_size = 8192;
  EXPECT_FALSE(BlockHeader::Of(bytes, other, 7));
  const auto end = ArchiveEnd::Of(ArchiveEnd{5, 6}.Bytes());
  ASSERT_TRUE(end);
  EXPECT_EQ(end->length, 5u);
  EXPECT_EQ(end->digest, 6u);
  EXPECT_FALSE(ArchiveEnd::Of(bytes));
}

// A block that claims far more text than its bytes can hold is none.
TEST(ArchiveFormat, LengthsAreBoundedByTheBytes) {
  const ArchiveHeader archive;
  const BlockHeader block = {BlockKind::kCoded, 1 << 20, 10, 0};
  EXPECT_FALSE(BlockHeader::Of(block.Bytes(archive, 0), archive, 0));
  const Bytes zeros(100000);
  const Bytes coded = CompressAll(TinyWords(), zeros);
  EXPECT_LT(coded.size(), 200u);
  EXPECT_EQ(RestoreAll(TinyWords(), coded).text, zeros);
}

TEST(ArchiveFormat, RefusesOtherFiles) {
  Bytes bytes = BytesOfText("KZ2\n                    ");
  EXPECT_EQ(ArchiveHeader::Of(bytes).status().code(), KINGLET_UNSUPPORTED_VERSION);
  bytes[0] = std::byte{'P'};
  EXPECT_EQ(ArchiveHeader::Of(bytes).status().code(), KINGLET_CORRUPT);
}

}  // namespace
}  // namespace kinglet::compress::archive_format_test
