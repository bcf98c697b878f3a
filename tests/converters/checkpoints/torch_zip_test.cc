#include "converters/checkpoints/torch_zip.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"

namespace kinglet::torch_zip_test {
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
            "zip archive: entry 'tiny model/data.pkl': expected a stored entry, found a deflated "
            "one");
}

}  // namespace
}  // namespace kinglet::torch_zip_test
