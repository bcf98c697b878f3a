// Files at paths, and with names, that a careful program would not expect.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/config_file.h"
#include "converters/recipe/recipe_node.h"
#include "format/model_file.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/fuzz/stored_zip.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/use_model.h"
#include "tests/support/model_builder.h"

namespace kinglet::fuzz {
namespace {

class HostilePlaces : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kinglet_places_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::span<const std::byte> bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }

  std::filesystem::path folder_;
};

// A path out of the archive, names twice, an absolute path: names are keys, and nothing is written.
TEST_F(HostilePlaces, NamesInArchivesArePathsToNowhere) {
  const std::string pickle = "\x80\x02}.";
  const auto content = std::as_bytes(std::span(pickle.data(), pickle.size()));
  for (const char* name : {"../../escaped", "/tmp/kinglet_escaped", "a/../../b/data.pkl", "C:\\x",
                           "", "archive/", "archive/data/../../../escaped", "\x1b[31m"}) {
    const auto zip = StoredZip({{name, content}, {"archive/data.pkl", content}, {name, content}});
    const std::string path = Write("in.pt", zip);
    const auto source = OpenCheckpointFile(path);
    EXPECT_NO_THROW(ExpectOneLine(source.status()));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << name;
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/kinglet_escaped"));
}

TEST_F(HostilePlaces, FoldersPipesAndDevicesAreRefusedAtOnce) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string loop = (folder_ / "loop").string();
  std::filesystem::create_symlink(loop, loop);
  for (const std::string& path : {pipe, folder_.string(), std::string("/dev/zero"), loop,
                                  (folder_ / "missing").string(), std::string()}) {
    for (const Status& status :
         {ModelFile::Open(path).status(), OpenCheckpointFile(path).status()}) {
      EXPECT_FALSE(status.ok()) << path;
      EXPECT_NO_THROW(ExpectOneLine(status));
    }
  }
}

TEST_F(HostilePlaces, AModelOutlivesChangesOfItsFile) {
  const auto bytes = SerialiseModel(TinyMicronet());
  ASSERT_TRUE(bytes.ok());
  const std::string path = Write("model.kgl", *bytes);
  const auto model = Model::Open(path, {});
  ASSERT_TRUE(model.ok());
  std::filesystem::resize_file(path, 10);
  std::filesystem::remove(path);
  EXPECT_NO_THROW(UseModel(*model));
}

// A file that is truncated while a reader has it open.
TEST_F(HostilePlaces, ACheckpointThatShrinksWhileReadIsRefused) {
  const std::string path = Write("w.npy", [] {
    std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text +
           std::string(24, '\0');
    const auto view = std::as_bytes(std::span(text));
    return std::vector<std::byte>(view.begin(), view.end());
  }());
  const auto source = OpenCheckpointFile(path);
  ASSERT_TRUE(source.ok()) << source.status().message();
  std::filesystem::resize_file(path, 80);
  const auto values = source->tensors.front().values();
  EXPECT_FALSE(values.ok());
  EXPECT_NO_THROW(ExpectOneLine(values.status()));
}

TEST_F(HostilePlaces, MessagesHaveNoControlCharactersOfTheInput) {
  const std::string yaml = "a: [1\x1b[31m\n\x07 {";
  const std::string path =
      Write("\x1b]0;title\x07.yaml", std::as_bytes(std::span(yaml.data(), yaml.size())));
  for (const Status& status : {ConfigFile::Read(path).status(), RecipeNode::Read(path).status(),
                               OpenCheckpointFile(path).status(), ModelFile::Open(path).status(),
                               Status(KINGLET_CORRUPT, "two\nlines\x7f")}) {
    EXPECT_FALSE(status.ok());
    EXPECT_NO_THROW(ExpectOneLine(status)) << status.message();
  }
}

}  // namespace
}  // namespace kinglet::fuzz
