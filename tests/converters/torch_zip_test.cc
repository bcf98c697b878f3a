#include "converters/torch_zip.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"

namespace kinglet {
namespace {

std::string Refusal(const std::string& path) {
  const Result<InputFile> input = InputFile::Open(path);
  EXPECT_TRUE(input.ok());
  const Result<TorchZipArchive> archive = TorchZipArchive::Open(*input);
  return archive.ok() ? "accepted" : archive.status().message();
}

TEST(TorchZipArchive, FindsStoragesUnderAnyRoot) {
  const Result<InputFile> input = InputFile::Open(FixturePath("zip.pt"));
  ASSERT_TRUE(input.ok());
  EXPECT_TRUE(TorchZipArchive::Recognises(*input));
  const Result<TorchZipArchive> archive = TorchZipArchive::Open(*input);
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  EXPECT_NE(archive->graph().root->Find("plain"), nullptr);
  EXPECT_EQ(*archive->StorageBytes("10"), 24U * 4);
  EXPECT_EQ(archive->StorageBytes("11").status().message(),
            "zip archive: directory: expected an entry 'tiny model/data/11', found none");
  EXPECT_FALSE(archive->StorageBytes(std::string("10\0x", 4)).ok());
  std::string bytes;
  const ByteSink sink = [&bytes](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  };
  ASSERT_TRUE(archive->ReadStorage("37", 1, 2, sink).ok());  // ByteStorage 0, 128, 255
  EXPECT_EQ(bytes, "\x80\xff");
}

TEST(TorchZipArchive, FindsChangedValuesByTheirChecksum) {
  std::string content = Fixture("zip.pt");
  const size_t values = content.find(std::string("\0\x80\xff", 3));
  ASSERT_NE(values, std::string::npos);
  content[values + 1] = 0x7f;
  const TemporaryFile file(content);
  const Result<InputFile> input = InputFile::Open(file.path());
  ASSERT_TRUE(input.ok());
  const Result<TorchZipArchive> archive = TorchZipArchive::Open(*input);
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  const Status status = archive->ReadStorage("37", 0, 3, [](std::span<const std::byte>) {});
  EXPECT_EQ(status.message(),
            "zip archive: entry 'tiny model/data/37': expected the 3 bytes of the directory, found "
            "CRC error at byte 3");
}

TEST(TorchZipArchive, RecognisesByContent) {
  for (const std::string& content :
       {std::string(), std::string("PK"), std::string("PK\5\6"), Fixture("legacy_protocol2.pth")}) {
    const TemporaryFile file(content);
    const Result<InputFile> input = InputFile::Open(file.path());
    ASSERT_TRUE(input.ok());
    EXPECT_FALSE(TorchZipArchive::Recognises(*input));
  }
}

TEST(TorchZipArchive, NamesWhatIsWrong) {
  EXPECT_EQ(Refusal(FixturePath("zip_no_pickle.pt")),
            "zip archive: directory: expected an entry NAME/data.pkl as torch.save writes, found "
            "none in 1 entries");
  EXPECT_EQ(Refusal(FixturePath("zip_two_pickles.pt")),
            "zip archive: directory: expected one pickle, found 'tiny model/data.pkl' and "
            "'other/data.pkl'");
  EXPECT_EQ(Refusal(FixturePath("zip_big_endian.pt")),
            "zip archive: entry 'tiny model/byteorder': expected 'little', found 'big'");
  EXPECT_EQ(Refusal(FixturePath("zip_deflated.pt")),
            "zip archive: entry 'tiny model/data.pkl': expected a stored entry, found compression "
            "method 8");
  const TemporaryFile head("PK\3\4 and nothing more");
  EXPECT_EQ(Refusal(head.path()).substr(0, 54),
            "zip archive: directory: expected a zip archive, found ");
}

}  // namespace
}  // namespace kinglet
