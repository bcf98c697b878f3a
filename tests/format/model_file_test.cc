#include "format/model_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "format/write_file.h"
#include "tests/format/editable_file.h"
#include "tests/support/model_builder.h"
#include "tests/support/temporary_folder.h"

namespace kinglet::model_file_test {
namespace {

namespace fs = std::filesystem;

// A file with every kind of segment and block of a MicroNet, small enough to flip every bit.
std::vector<std::byte> SmallModel() {
  ModelDraft draft = TinyMicronet({.quantised = true,
                                   .bits = 3,
                                   .pruned = true,
                                   .cache_capacity = 4,
                                   .bins = 2,
                                   .vocabulary_size = 6,
                                   .layers = 1,
                                   .width = 4,
                                   .heads = 1,
                                   .key_size = 2,
                                   .value_size = 2,
                                   .inner = 3,
                                   .window = 2});
  draft.description.golden = GoldenVector{{0, 1}, {-1.0}, 1.0};
  const auto bytes = SerialiseModel(draft);
  return bytes.ok() ? *bytes : std::vector<std::byte>();
}

TEST(ModelFileTest, EveryFlippedBitIsFound) {
  std::vector<std::byte> bytes = SmallModel();
  ASSERT_FALSE(bytes.empty());
  ASSERT_LT(bytes.size(), 8192u);
  ASSERT_TRUE(OpenStatus(bytes).ok());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    const Status status = OpenStatus(bytes);
    ASSERT_EQ(status.code(), KINGLET_CORRUPT) << "bit " << bit;
    ASSERT_TRUE(IsRefusalOf(status.message(), "")) << status.message();
    bytes[bit / 8] ^= mask;
  }
}

TEST(ModelFileTest, EveryTruncationIsFound) {
  const std::vector<std::byte> bytes = SmallModel();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly that size, so that the sanitizer notices reads beyond it.
    const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    const Status status = OpenStatus(part);
    ASSERT_EQ(status.code(), KINGLET_CORRUPT) << size;
    ASSERT_TRUE(IsRefusalOf(status.message(), "")) << status.message();
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(OpenStatus(longer).message(), "model in memory: file size: expected " +
                                              std::to_string(bytes.size()) + " bytes, found " +
                                              std::to_string(longer.size()) + " bytes");
}

// With a repaired frame, a file that is too short is refused for its missing part.
TEST(ModelFileTest, EveryTruncationIsFoundEvenWithARightFrame) {
  const std::vector<std::byte> bytes = SmallModel();
  for (size_t size = 64; size < bytes.size(); ++size) {
    std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    const uint64_t claimed = size;
    std::memcpy(&part[16], &claimed, 8);
    RepairFrame(part);
    const Status status = OpenStatus(part);
    ASSERT_EQ(status.code(), KINGLET_CORRUPT) << size;
    ASSERT_TRUE(IsRefusalOf(status.message(), "")) << status.message();
  }
}

TEST(ModelFileTest, MisalignedAndFreedMemoryIsFine) {
  const std::vector<std::byte> bytes = SmallModel();
  for (size_t shift = 1; shift < 64; shift += 9) {
    std::shared_ptr<const ModelFile> model;
    {
      std::vector<std::byte> moved(bytes.size() + shift);
      std::memcpy(moved.data() + shift, bytes.data(), bytes.size());
      const auto opened = ModelFile::FromBytes(std::span(moved).subspan(shift));
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      model = *opened;
    }
    EXPECT_EQ(model->file_size(), bytes.size());
    EXPECT_EQ(model->vocabulary()->Word(1), "<eos>");
    for (const TensorView& tensor : model->tensors()) {
      EXPECT_EQ(DecodedValues(tensor).size(), Count(tensor.shape));
    }
  }
}

TEST(ModelFileTest, TheDigestIsTheHeaders) {
  const std::vector<std::byte> bytes = SmallModel();
  const auto model = ModelFile::FromBytes(bytes);
  ASSERT_TRUE(model.ok());
  std::string expected;
  for (int i = 47; i >= 32; --i) {
    char text[3];
    std::snprintf(text, sizeof(text), "%02x", static_cast<unsigned>(bytes[static_cast<size_t>(i)]));
    expected += text;
  }
  EXPECT_EQ((*model)->digest(), expected);
}

TEST(ModelFileTest, NoVocabularyMeansNull) {
  const auto bytes = SerialiseModel(TinyMicronet({.vocabulary = false}));
  ASSERT_TRUE(bytes.ok());
  const auto model = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ((*model)->vocabulary(), nullptr);
}

class OpenTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  const TemporaryFolder made_;
  const fs::path folder_ = made_.path();
};

TEST_F(OpenTest, OpensWhatTheWriterWrote) {
  const std::vector<std::byte> bytes = SmallModel();
  ASSERT_TRUE(WriteFileAtomically(bytes, Path("model.kgl")).ok());
  const auto model = ModelFile::Open(Path("model.kgl"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ((*model)->file_size(), bytes.size());
  EXPECT_EQ((*model)->ledger().Total(), fs::file_size(Path("model.kgl")));
  // Later changes of the file do not affect the model.
  fs::resize_file(Path("model.kgl"), 10);
  EXPECT_EQ((*model)->vocabulary()->Find("<unk>"), 2u);
  EXPECT_EQ(ModelFile::Open(Path("model.kgl")).status().message(),
            Path("model.kgl") + ": frame: expected at least 64 bytes, found 10 bytes");
}

TEST_F(OpenTest, RefusesWhatIsNoModelFile) {
  EXPECT_EQ(ModelFile::Open(Path("missing")).status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(ModelFile::Open("").status().code(), KINGLET_NOT_FOUND);
  std::ofstream(Path("empty")).close();
  EXPECT_EQ(ModelFile::Open(Path("empty")).status().message(),
            Path("empty") + ": frame: expected at least 64 bytes, found 0 bytes");
  EXPECT_EQ(ModelFile::Open(Path("empty/below")).status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(ModelFile::Open(folder_.string()).status().message(),
            folder_.string() + ": open: expected a regular file, found a folder");
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ModelFile::Open(Path("pipe")).status().code(), KINGLET_IO_ERROR);
  EXPECT_EQ(ModelFile::Open("/dev/zero").status().code(), KINGLET_IO_ERROR);
  std::ofstream(Path("text")) << std::string(1000, 'x');
  EXPECT_EQ(ModelFile::Open(Path("text")).status().code(), KINGLET_CORRUPT);
}

TEST_F(OpenTest, ALargeFileOfAnotherKindIsNotRead) {
  // A sparse file of 16 TiB: allocating or reading all of it would fail or never end.
  std::ofstream(Path("sparse")).close();
  std::error_code error;
  fs::resize_file(Path("sparse"), uint64_t{1} << 43, error);
  if (error) GTEST_SKIP() << "this file system has no such large files";
  EXPECT_EQ(ModelFile::Open(Path("sparse")).status().code(), KINGLET_CORRUPT);
}

TEST(ModelFileTest, HugeClaimsInATinyFileAreRefused) {
  for (uint64_t claimed : {uint64_t{1} << 62, ~uint64_t{0}, uint64_t{1} << 40}) {
    std::vector<std::byte> bytes = SmallModel();
    std::memcpy(&bytes[16], &claimed, 8);
    RepairFrame(bytes);
    EXPECT_EQ(OpenStatus(bytes).code(), KINGLET_CORRUPT);
    bytes = SmallModel();
    std::memcpy(&bytes[24], &claimed, 8);
    RepairFrame(bytes);
    EXPECT_EQ(OpenStatus(bytes).code(), KINGLET_CORRUPT);
  }
}

TEST(ModelFile, AReleasedTensorCannotBeReadByMistake) {
  const auto bytes = SerialiseModel(TinyMicronet({}));
  ASSERT_TRUE(bytes.ok());
  const std::shared_ptr<ModelFile> model = *ModelFile::FromBytes(*bytes);
  const auto stored = [&] { return std::get<DenseView>(model->tensors()[0].values).bytes; };
  EXPECT_EQ(model->held_bytes(), model->file_size());
  const std::span<const std::byte> values = stored();
  ASSERT_FALSE(values.empty());
  model->Release(0, values);
  EXPECT_TRUE(stored().empty());
  EXPECT_TRUE(model->tensors()[0].released);
  EXPECT_LE(model->held_bytes(), model->file_size());
  EXPECT_DEATH(DecodedValues(model->tensors()[0]), "read after its memory was given back");
  EXPECT_FALSE(model->tensors()[1].released);
  EXPECT_FALSE(DecodedValues(model->tensors()[1]).empty());
}

}  // namespace
}  // namespace kinglet::model_file_test
