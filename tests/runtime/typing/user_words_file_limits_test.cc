// Files of a person's words where no other file can be made, so that none can take their place.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "runtime/typing/user_words_file.h"
#include "tests/runtime/typing/user_words_fixture.h"

namespace kinglet::typing {
namespace {

// While it lives, the process can open one file and no other.
class OneFile {
 public:
  OneFile() {
    const int next = ::dup(0);
    ::close(next);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit one = {static_cast<rlim_t>(next) + 1, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &one);
  }
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;
  ~OneFile() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(UserWordsFileLimits, OpensAndLearnsWhereNoFileCanTakeItsPlace) {
  for (const std::string before : {"", "kinglet wo", "kinglet words 1\ndamage"}) {
    const TemporaryFolder folder;
    const std::string path = folder.Path("words");
    if (!before.empty()) std::ofstream(path, std::ios::binary) << before;
    UserWords words, read;
    {
      const OneFile limit;
      auto file = UserWordsFile::Open(path, words);
      ASSERT_TRUE(file.ok()) << before << ": " << file.status().message();
      EXPECT_TRUE(file->Append({"the", "wren", 1, words.next_use()}).ok());
      EXPECT_EQ(file->Replace(words).code(), KINGLET_IO_ERROR);
      EXPECT_TRUE(file->Append({"the", "wren", 1, words.next_use()}).ok());
    }
    ASSERT_TRUE(UserWordsFile::Read(path, read).ok());
    EXPECT_EQ(ListOf(read), (ListedWords{{"wren", 2}}));
    ASSERT_TRUE(UserWordsFile::Open(path, words).ok());
    EXPECT_EQ(ListOf(words), ListOf(read));
  }
}

}  // namespace
}  // namespace kinglet::typing
