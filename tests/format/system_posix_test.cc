#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "format/system.h"
#include "tests/support/temporary_folder.h"

namespace kinglet::system_posix_test {
namespace {

namespace fs = std::filesystem;

class Links : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  const TemporaryFolder made_;
  const fs::path folder_ = made_.path();
};

TEST_F(Links, AreFollowed) {
  bool is_link = false;
  std::string target;
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
}  // namespace kinglet::system_posix_test
