#include "converters/checkpoints/torch_legacy.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"

namespace kinglet::torch_legacy_test {
namespace {

using namespace std::string_literals;

std::string Refusal(const std::string& content) {
  const TemporaryFile file(content);
  const Result<InputFile> input = InputFile::Open(file.path());
  EXPECT_TRUE(input.ok());
  const Result<TorchLegacyArchive> archive = TorchLegacyArchive::Open(*input);
  return archive.ok() ? "accepted" : archive.status().message();
}

// `content` with the first `from` replaced.
std::string Replaced(std::string content, const std::string& from, const std::string& to) {
  const size_t at = content.find(from);
  EXPECT_NE(at, std::string::npos);
  return content.replace(at, from.size(), to);
}

class LegacyProtocols : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(TorchLegacyArchive, LegacyProtocols,
                         testing::Values("legacy_protocol2.pth", "legacy_protocol4.pth"));

TEST_P(LegacyProtocols, FindsStorages) {
  const Result<InputFile> input = InputFile::Open(FixturePath(GetParam()));
  ASSERT_TRUE(input.ok());
  EXPECT_TRUE(TorchLegacyArchive::Recognises(*input));
  const Result<TorchLegacyArchive> archive = TorchLegacyArchive::Open(*input);
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  EXPECT_NE(archive->graph().root->Find("plain"), nullptr);
  EXPECT_EQ(*archive->StorageBytes("10"), 24U * 4);
  EXPECT_EQ(*archive->StorageBytes("30"), 3U * 8);
  EXPECT_EQ(archive->StorageBytes("11").status().message(),
            "torch stream: list of storage keys: expected storage '11', found no such key");
  std::string bytes;
  ASSERT_TRUE(archive
                  ->ReadStorage("37", 1, 2,  // ByteStorage 0, 128, 255
                                [&bytes](std::span<const std::byte> piece) {
                                  bytes.append(reinterpret_cast<const char*>(piece.data()),
                                               piece.size());
                                })
                  .ok());
  EXPECT_EQ(bytes, "\x80\xff");
}

TEST(TorchLegacyArchive, RecognisesByContent) {
  for (const auto& content : {""s, "\x80"s, "PK\x03\x04"s, "\x80\x02\x8a\x0a\x6c\xfc"s,
                              "\x80\x02K\x01."s, std::string(100, '\0')}) {
    const TemporaryFile file(content);
    const Result<InputFile> input = InputFile::Open(file.path());
    ASSERT_TRUE(input.ok());
    EXPECT_FALSE(TorchLegacyArchive::Recognises(*input));
  }
}

TEST(TorchLegacyArchive, NamesWhatIsWrong) {
  const std::string file = Fixture("legacy_protocol2.pth");
  EXPECT_EQ(Refusal(Fixture("legacy_big_endian.pth")),
            "torch stream: byte 21: expected values in little-endian order, found big-endian");
  EXPECT_EQ(Refusal(file.substr(0, 15)),
            "torch stream: byte 15: expected a pickle, found the end of the file");
  EXPECT_EQ(Refusal(Replaced(file, "M\xe9\x03.", "M\xea\x03.")),
            "torch stream: byte 15: expected protocol version 1001, found 1002");
  EXPECT_EQ(Refusal("\x80\x02K\x01."s),
            "torch stream: byte 0: expected torch.save's magic number, found int");
  EXPECT_EQ(Refusal(Replaced(file, "little_endian", "little_indian")),
            "torch stream: byte 21: expected a dict with little_endian as a bool, found dict");
  // The key list: the last storage is the BoolStorage of three bytes.
  EXPECT_NE(Refusal(file.substr(0, file.size() - 1))
                .find("expected 3 elements of storage '38', found 2 bytes to the end"),
            std::string::npos);
  EXPECT_NE(Refusal(file.substr(0, file.size() - 10))
                .find("expected the element count of storage '38', found the end"),
            std::string::npos);
  std::string count = file;
  count[file.size() - 11] = 4;
  EXPECT_NE(Refusal(count).find("expected storage '38' of 3 elements as in the pickle, found 4"),
            std::string::npos);
  std::string negative = file;
  negative[file.size() - 4] = '\xff';
  EXPECT_NE(Refusal(negative).find("of 3 elements as in the pickle, found 18374686479671623683"),
            std::string::npos);
}

TEST(TorchLegacyArchive, RefusesWrongKeys) {
  const std::string file = Fixture("legacy_protocol2.pth");
  // X \x02 \0 \0 \0 30 is the key of the DoubleStorage; its last occurrence is in the key list.
  const std::string key = "X\x02\0\0\0"s + "30";
  const size_t in_list = file.rfind(key);
  ASSERT_NE(in_list, std::string::npos);
  std::string unknown = file;
  unknown.replace(in_list, key.size(), "X\x02\0\0\0"s + "99");
  EXPECT_NE(Refusal(unknown).find("expected a storage the pickle mentions, found storage '99'"),
            std::string::npos)
      << Refusal(unknown);
  std::string other_class = file;
  const size_t type = other_class.find("torch\nDoubleStorage");
  other_class.replace(type, 19, "torch\nQuadroStorage");
  EXPECT_NE(Refusal(other_class)
                .find("expected storage '30' of a class whose element size is known, found "
                      "'torch.QuadroStorage'"),
            std::string::npos)
      << Refusal(other_class);
}

}  // namespace
}  // namespace kinglet::torch_legacy_test
