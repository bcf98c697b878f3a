#include "format/system.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "tests/support/temporary_folder.h"

namespace kinglet::system_test {
namespace {

class System : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  static std::span<const std::byte> Bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  // All bytes of a file, at most 10.
  static std::string Contents(const std::string& path) {
    system::File file;
    EXPECT_EQ(file.OpenToRead(path), 0);
    char out[10] = {};
    size_t done = 0;
    EXPECT_EQ(file.ReadAt(0, std::as_writable_bytes(std::span(out)), done), 0);
    return {out, done};
  }
  void Write(const std::string& path, std::string_view text) {
    system::File file;
    uint64_t written = 0;
    EXPECT_EQ(file.Create(path), 0);
    EXPECT_EQ(file.Write(Bytes(text), written), 0);
  }
  const TemporaryFolder folder_;
};

TEST_F(System, FilesHaveNamesInUtf8) {
  const std::string path = Path("d\xc3\xa9j\xc3\xa0 \xe5\x8f\xa4");
  system::File file;
  ASSERT_EQ(file.Create(path), 0);
  uint64_t written = 0;
  EXPECT_EQ(file.Write(Bytes("kinglet"), written), 0);
  EXPECT_EQ(written, 7u);
  EXPECT_EQ(file.Synchronise(), 0);
  EXPECT_EQ(file.Close(), 0);
  EXPECT_EQ(file.Close(), 0);
  EXPECT_EQ(system::File().Create(path), EEXIST);
  ASSERT_EQ(folder_.Names().size(), 1u);

  ASSERT_EQ(file.OpenToRead(path), 0);
  system::FileFacts facts;
  EXPECT_EQ(file.Look(facts), 0);
  EXPECT_EQ(facts.kind, system::FileKind::kRegular);
  EXPECT_EQ(facts.bytes, 7u);
  char out[10] = {};
  size_t done = 0;
  EXPECT_EQ(file.ReadAt(4, std::as_writable_bytes(std::span(out)), done), 0);
  EXPECT_EQ(std::string(out, done), "let");
  EXPECT_TRUE(file.IsAt(path));
  ASSERT_EQ(system::Rename(path, Path("b")), 0);
  EXPECT_FALSE(file.IsAt(path));
  EXPECT_NE(file.Write(Bytes("x"), written), 0);
  EXPECT_EQ(file.Close(), 0);
  system::Remove(Path("b").c_str());
  EXPECT_EQ(system::Look(Path("b"), facts), ENOENT);
  EXPECT_EQ(system::File().OpenToRead(Path("b")), ENOENT);
  EXPECT_EQ(system::File().OpenToRead(""), ENOENT);
}

TEST_F(System, AFileThatIsOpenIsKnownByItsNewName) {
  Write(Path("a"), "a");
  system::File file;
  ASSERT_EQ(file.OpenToRead(Path("a")), 0);
  ASSERT_EQ(system::Rename(Path("a"), Path("b")), 0);
  EXPECT_TRUE(file.IsAt(Path("b")));
}

TEST_F(System, AFileThatIsReadCanBeReplaced) {
  Write(Path("old"), "old");
  Write(Path("new"), "new");
  system::File old;
  ASSERT_EQ(old.OpenToRead(Path("old")), 0);
  ASSERT_EQ(system::Rename(Path("new"), Path("old")), 0);
  EXPECT_FALSE(old.IsAt(Path("old")));
  EXPECT_EQ(Contents(Path("old")), "new");
  char out[10] = {};
  size_t done = 0;
  EXPECT_EQ(old.ReadAt(0, std::as_writable_bytes(std::span(out)), done), 0);
  EXPECT_EQ(std::string(out, done), "old");
}

TEST_F(System, OneFileHasTheLock) {
  system::File first, second;
  ASSERT_EQ(first.OpenToAppend(Path("words"), 0600), 0);
  ASSERT_EQ(second.OpenToAppend(Path("words"), 0600), 0);
  EXPECT_EQ(first.Lock(), 0);
  EXPECT_EQ(second.Lock(), EWOULDBLOCK);
  first.Close();
  EXPECT_EQ(second.Lock(), 0);
  uint64_t written = 0;
  EXPECT_EQ(second.Write(Bytes("abc"), written), 0);
  EXPECT_EQ(second.Shorten(1), 0);
  EXPECT_EQ(second.Write(Bytes("d"), written), 0);
  EXPECT_EQ(Contents(Path("words")), "ad");
  system::FileFacts facts;
  EXPECT_EQ(second.Look(facts), 0);
  EXPECT_EQ(facts.permissions & 077u, 0u);
}

TEST_F(System, FoldersAreNoFiles) {
  system::FileFacts facts;
  EXPECT_EQ(system::Look(folder_.path(), facts), 0);
  EXPECT_EQ(facts.kind, system::FileKind::kFolder);
  system::File folder;
  EXPECT_EQ(folder.OpenFolder(folder_.path()), 0);
  Write(Path("file"), "");
  EXPECT_EQ(system::File().OpenFolder(Path("file")), ENOTDIR);
  EXPECT_EQ(system::File().OpenFolder(Path("nothing")), ENOENT);
  bool is_link = true;
  std::string target;
  EXPECT_EQ(system::FollowLink(folder_.path(), is_link, target), 0);
  EXPECT_FALSE(is_link);
  EXPECT_EQ(target, folder_.path());
}

TEST(SystemThreads, Run) {
  int number = 0;
  std::thread thread =
      system::StartThread([](void* argument) { *static_cast<int*>(argument) = 7; }, &number);
  thread.join();
  EXPECT_EQ(number, 7);
  EXPECT_GE(system::UsableProcessors(), 1u);
  EXPECT_NE(system::ProcessNumber(), 0u);
}

}  // namespace
}  // namespace kinglet::system_test
