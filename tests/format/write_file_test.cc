#include "format/write_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace kinglet::write_file_test {
namespace {

namespace fs = std::filesystem;

class WriteFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  size_t FilesInFolder() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static Status Write(const std::string& text, const std::string& path) {
    return WriteFileAtomically(std::as_bytes(std::span(text)), path);
  }
  static mode_t Mode(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777 : 0;
  }

  const TemporaryFolder made_;
  const fs::path folder_ = made_.path();
};

// Before Commit a new file can be read and has changed nothing; without Commit it is removed.
TEST_F(WriteFileTest, AFileIsWholeBeforeItIsInPlace) {
  const std::string path = Path("model.kgl");
  ASSERT_TRUE(Write("old", path).ok());
  const std::string texts[] = {"new", "", "er"};
  std::vector<std::span<const std::byte>> pieces;
  for (const std::string& text : texts) pieces.push_back(std::as_bytes(std::span(text)));
  {
    const auto file = NewFile::Write(pieces, path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(Contents(file->temporary_path()), "newer");
    EXPECT_EQ(Contents(path), "old");
    EXPECT_EQ(FilesInFolder(), 2u);
  }
  EXPECT_EQ(FilesInFolder(), 1u);
  EXPECT_EQ(Contents(path), "old");
  auto file = NewFile::Write(pieces, path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Contents(path), "newer");
  EXPECT_EQ(FilesInFolder(), 1u);
  EXPECT_EQ(NewFile::Write(pieces, Path("none/model.kgl")).status().code(), KINGLET_IO_ERROR);
}

TEST_F(WriteFileTest, WritesAndReplaces) {
  const std::string path = Path("model.kgl");
  ASSERT_TRUE(Write("first", path).ok());
  EXPECT_EQ(Contents(path), "first");
  ASSERT_TRUE(Write(std::string(3 << 20, 'x'), path).ok());
  EXPECT_EQ(Contents(path), std::string(3 << 20, 'x'));
  ASSERT_TRUE(Write("", path).ok());
  EXPECT_EQ(Contents(path), "");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(WriteFileTest, PermissionsFollowTheUmaskOrTheOldFile) {
  const mode_t before = ::umask(027);
  ASSERT_TRUE(Write("x", Path("new")).ok());
  ::umask(before);
  EXPECT_EQ(Mode(Path("new")), 0640u);
  ASSERT_EQ(::chmod(Path("new").c_str(), 0600), 0);
  ASSERT_TRUE(Write("y", Path("new")).ok());
  EXPECT_EQ(Mode(Path("new")), 0600u);
}

TEST_F(WriteFileTest, ASymbolicLinkStays) {
  fs::create_directory(folder_ / "real");
  ASSERT_TRUE(Write("old", Path("real/model.kgl")).ok());
  fs::create_symlink("real/model.kgl", folder_ / "link");
  ASSERT_TRUE(Write("new", Path("link")).ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(Contents(Path("real/model.kgl")), "new");
  fs::create_symlink("nowhere", folder_ / "dangling");
  EXPECT_EQ(Write("x", Path("dangling")).code(), KINGLET_IO_ERROR);
}

TEST_F(WriteFileTest, RefusesWhatIsNoFile) {
  fs::create_directory(folder_ / "folder");
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const std::string& path :
       {Path("folder"), Path("folder/"), Path("pipe"), Path("new/"), Path("missing/model.kgl"),
        Path("pipe/model.kgl"), std::string("/dev/null"), std::string()}) {
    const Status status = Write("x", path);
    EXPECT_EQ(status.code(), KINGLET_IO_ERROR) << path;
    EXPECT_TRUE(status.message().starts_with(path + ": ")) << status.message();
  }
  EXPECT_EQ(FilesInFolder(), 2u);
  EXPECT_EQ(Write("x", Path("folder")).message(),
            Path("folder") + ": output: expected the name of a file, found a folder");
}

// Runs in a child process, whose exit status is the result.
int WriteInReadOnlyFolder(const fs::path& folder) {
  // Permissions do not restrict the superuser.
  if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 10;
  const std::string text = "new";
  const Status status =
      WriteFileAtomically(std::as_bytes(std::span(text)), (folder / "model.kgl").string());
  return status.code() == KINGLET_IO_ERROR &&
                 status.message().find("Permission denied") != std::string::npos
             ? 0
             : 1;
}

TEST_F(WriteFileTest, AnUnwritableFolderIsRefused) {
  ASSERT_TRUE(Write("old", Path("model.kgl")).ok());
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  EXPECT_EXIT(::_exit(WriteInReadOnlyFolder(folder_)), ::testing::ExitedWithCode(0), "");
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(Contents(Path("model.kgl")), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

// A limit on the file's size makes the write fail half-way, as a full disk would.
int WriteBeyondLimit(const fs::path& folder) {
  const rlimit limit{100000, 100000};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
  std::signal(SIGXFSZ, SIG_IGN);
  const std::string text(1 << 20, 'x');
  const Status status =
      WriteFileAtomically(std::as_bytes(std::span(text)), (folder / "model.kgl").string());
  if (status.code() != KINGLET_IO_ERROR) return 1;
  return status.message().find(
             "byte 100000: expected 1048576 bytes written, found File too large") !=
                 std::string::npos
             ? 0
             : 2;
}

// For handlers of signals.
TEST_F(WriteFileTest, TemporaryFilesCanBeRemovedAtOnce) {
  const std::string text = "new";
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  std::vector<NewFile> files;
  for (int i = 0; i < 20; ++i) {  // more than are registered
    auto file = NewFile::Write(std::span(&piece, 1), Path("model" + std::to_string(i)));
    ASSERT_TRUE(file.ok());
    files.push_back(std::move(*file));
  }
  ASSERT_TRUE(files.front().Commit().ok());
  RemoveTemporaryFiles();
  EXPECT_EQ(Contents(Path("model0")), "new");
  EXPECT_EQ(FilesInFolder(), 1u + 4);
  EXPECT_FALSE(files[1].Commit().ok());
  files.clear();
  EXPECT_EQ(FilesInFolder(), 1u);
  ASSERT_TRUE(Write("again", Path("model0")).ok());
  RemoveTemporaryFiles();
  EXPECT_EQ(Contents(Path("model0")), "again");
}

TEST_F(WriteFileTest, AWriteThatFailsHalfWayLeavesNothingBehind) {
  ASSERT_TRUE(Write("old", Path("model.kgl")).ok());
  EXPECT_EXIT(::_exit(WriteBeyondLimit(folder_)), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(Contents(Path("model.kgl")), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

}  // namespace
}  // namespace kinglet::write_file_test
