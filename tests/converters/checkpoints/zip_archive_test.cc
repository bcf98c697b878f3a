#include "converters/checkpoints/zip_archive.h"

#include <gtest/gtest.h>

#include "tests/converters/checkpoints/container_files.h"

namespace kinglet::zip_archive_test {
namespace {

std::string ReadText(const ZipArchive& archive, const ZipArchive::Entry& entry, uint64_t offset,
                     uint64_t bytes) {
  std::string text;
  const Status status =
      archive.Read(entry, offset, bytes, [&text](std::span<const std::byte> piece) {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      });
  return status.ok() ? text : status.message();
}

// Entries that Python's zipfile stored, and the same ones deflated.
TEST(ZipArchive, GivesAnyRangeOfAnEntry) {
  const Result<ZipArchive> stored = ZipArchive::Open(*OpenInput(FixturePath("zip.pt")));
  const Result<ZipArchive> deflated = ZipArchive::Open(*OpenInput(FixturePath("zip_deflated.pt")));
  ASSERT_TRUE(stored.ok() && deflated.ok());
  const std::string name = "tiny model/data.pkl";
  const auto a = stored->At(stored->Find(name).value()), b = deflated->At(*deflated->Find(name));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->compression, ZipArchive::Compression::kStored);
  EXPECT_EQ(b->compression, ZipArchive::Compression::kDeflated);
  EXPECT_EQ(a->bytes, b->bytes);
  EXPECT_EQ(a->stored, a->bytes);
  EXPECT_LT(b->stored, b->bytes);
  const std::string whole = ReadText(*stored, *a, 0, a->bytes);
  EXPECT_EQ(whole.substr(0, 2), "\x80\x02");
  for (const auto& [offset, bytes] : {std::pair<uint64_t, uint64_t>{0, a->bytes},
                                      {0, 0},
                                      {7, 20},
                                      {a->bytes, 0},
                                      {100, a->bytes - 100}}) {
    EXPECT_EQ(ReadText(*stored, *a, offset, bytes), whole.substr(offset, bytes));
    EXPECT_EQ(ReadText(*deflated, *b, offset, bytes), whole.substr(offset, bytes));
  }
  EXPECT_EQ(deflated->ReadWhole(*b)->size(), whole.size());
}

TEST(ZipArchive, FindsEntriesByTheirWholeName) {
  const Result<ZipArchive> archive = ZipArchive::Open(*OpenInput(FixturePath("zip.pt")));
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->name(*archive->Find("tiny model/data/10")), "tiny model/data/10");
  EXPECT_FALSE(archive->Find("tiny model/data/11").has_value());
  EXPECT_FALSE(archive->Find(std::string("tiny model/data/10\0x", 20)).has_value());
  EXPECT_EQ(archive->name(archive->entries()), "");
  EXPECT_FALSE(archive->At(archive->entries()).ok());
}

// Sizes of the central directory:
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.12
TEST(ZipArchive, RefusesMoreThanDeflateCanHold) {
  std::string content = Fixture("zip_deflated.pt");
  const size_t entry = content.find("PK\x01\x02");
  ASSERT_NE(entry, std::string::npos);
  const auto bytes_at = [&](size_t at) {
    return static_cast<uint64_t>(static_cast<uint8_t>(content[at])) |
           static_cast<uint64_t>(static_cast<uint8_t>(content[at + 1])) << 8;
  };
  const uint64_t compressed = bytes_at(entry + 20);
  content[entry + 26] = 0x40;  // the third byte of the uncompressed size: four million more
  const TemporaryFile file(content);
  const Result<ZipArchive> archive = ZipArchive::Open(*OpenInput(file.path()));
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  EXPECT_NE(archive->At(0).status().message().find(
                "expected no more than " + std::to_string(compressed) + " deflated bytes can hold"),
            std::string::npos)
      << archive->At(0).status().message();
}

TEST(ZipArchive, FindsChangedValuesByTheirChecksum) {
  std::string content = Fixture("zip.pt");
  const size_t values = content.find(std::string("\0\x80\xff", 3));
  ASSERT_NE(values, std::string::npos);
  content[values + 1] = 0x7f;
  const TemporaryFile file(content);
  const Result<ZipArchive> archive = ZipArchive::Open(*OpenInput(file.path()));
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  const auto entry = archive->At(*archive->Find("tiny model/data/37"));
  ASSERT_TRUE(entry.ok());
  const std::string refusal =
      "zip archive: entry 'tiny model/data/37': expected the 3 bytes of the directory, found CRC "
      "error at byte 3";
  EXPECT_EQ(ReadText(*archive, *entry, 0, 3), refusal);
  EXPECT_EQ(ReadText(*archive, *entry, 1, 2), refusal);
}

TEST(ZipArchive, RecognisesByContent) {
  for (const std::string& content :
       {std::string(), std::string("PK"), std::string("PK\5\6"), Fixture("legacy_protocol2.pth")}) {
    const TemporaryFile file(content);
    EXPECT_FALSE(ZipArchive::Recognises(*OpenInput(file.path())));
  }
  EXPECT_TRUE(ZipArchive::Recognises(*OpenInput(FixturePath("zip.pt"))));
  const TemporaryFile head("PK\3\4 and nothing more");
  EXPECT_EQ(ZipArchive::Open(*OpenInput(head.path())).status().message().substr(0, 54),
            "zip archive: directory: expected a zip archive, found ");
}

}  // namespace
}  // namespace kinglet::zip_archive_test
