#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "format/system.h"
#include "tests/support/temporary_folder.h"

namespace kinglet::system_test {
namespace {

namespace fs = std::filesystem;

class System : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static std::span<const std::byte> Bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  const TemporaryFolder made_;
  const fs::path folder_ = made_.path();
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
  EXPECT_TRUE(file.IsAt(Path("b")));
  EXPECT_NE(file.Write(Bytes("x"), written), 0);
  system::Remove(Path("b").c_str());
  EXPECT_EQ(system::Look(Path("b"), facts), ENOENT);
  EXPECT_EQ(system::File().OpenToRead(Path("b")), ENOENT);
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
  std::ifstream file(Path("words"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "ad");
  system::FileFacts facts;
  EXPECT_EQ(second.Look(facts), 0);
  EXPECT_EQ(facts.permissions & 077u, 0u);
}

TEST_F(System, FollowsLinks) {
  bool is_link = true;
  std::string target;
  EXPECT_EQ(system::FollowLink(folder_.string(), is_link, target), 0);
  EXPECT_FALSE(is_link);
  EXPECT_EQ(target, folder_.string());
  fs::create_symlink("nothing", Path("link"));
  EXPECT_EQ(system::FollowLink(Path("link"), is_link, target), ENOENT);
  EXPECT_TRUE(is_link);
  std::ofstream(Path("nothing")).close();
  EXPECT_EQ(system::FollowLink(Path("link"), is_link, target), 0);
  EXPECT_EQ(target, fs::canonical(Path("nothing")).string());
}

TEST(SystemThreads, HandleNoSignals) {
  bool blocked = false;
  const auto look = [](void* found) {
    sigset_t mask;
    *static_cast<bool*>(found) =
        pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0 && sigismember(&mask, SIGINT) == 1;
  };
  std::thread thread = system::StartThread(look, &blocked);
  thread.join();
  EXPECT_TRUE(blocked);
  sigset_t mask;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  EXPECT_EQ(sigismember(&mask, SIGINT), 0);
  EXPECT_GE(system::UsableProcessors(), 1u);
}

TEST(SystemProcesses, AChildHasANumberOfItsOwn) {
  const uint64_t number = system::ProcessNumber();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(system::ProcessNumber() == number ? 1 : 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace kinglet::system_test
