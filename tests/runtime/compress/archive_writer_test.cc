#include "runtime/compress/archive_writer.h"

#include <gtest/gtest.h>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::archive_writer_test {
namespace {

TEST(ArchiveWriter, TheBytesDependOnNeitherPiecesNorThreads) {
  const auto model = TinyWords();
  const Bytes text = MakeText(1, 9000, 3);
  const Bytes expected = CompressAll(model, text, {.block_size = 2048});
  for (const size_t piece : {size_t{1}, size_t{100}, size_t{2048}, size_t{5000}}) {
    for (const uint32_t threads : {1u, 2u, 5u}) {
      EXPECT_EQ(CompressAll(model, text, {.block_size = 2048, .threads = threads}, piece),
                expected);
    }
  }
}

TEST(ArchiveWriter, BytesWithoutAPatternCostLittleMore) {
  const auto model = TinyWords();
  for (const size_t length : {0, 1, 2, 100, 5000}) {
    const Bytes text = MakeText(0, length, length);
    EXPECT_LE(CompressAll(model, text).size(), length + length / 50 + 64) << length;
  }
}

TEST(ArchiveWriter, RefusesBlocksOutOfRange) {
  for (const uint32_t size : {0u, 1023u, kMostBlock + 1}) {
    EXPECT_EQ(ArchiveWriter::Create(TinyWords(), {.block_size = size}).status().code(),
              KINGLET_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace kinglet::compress::archive_writer_test
