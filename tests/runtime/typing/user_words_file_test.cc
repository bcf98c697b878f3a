#include "runtime/typing/user_words_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/runtime/typing/user_words_fixture.h"

namespace kinglet::typing {
namespace {

void SetBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

ListedWords OpenAndList(const std::string& path) {
  UserWords words;
  const auto file = UserWordsFile::Open(path, words);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return ListOf(words);
}

// The size that the issue asks for: 10,000 words, each used three times.
TEST(UserWordsFile, TenThousandWordsTakeLessThanAMegabyte) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("words");
  UserWords words;
  auto file = UserWordsFile::Open(path, words);
  ASSERT_TRUE(file.ok());
  uint64_t longest = 0;
  for (uint32_t i = 0; i < 30000; ++i) {
    const WordUses use = {"before" + std::to_string(i % 3000),
                          "invented" + std::to_string(i % 10000), 1, words.next_use()};
    ASSERT_TRUE(file->Append(use).ok());
    words.Learn(use.before, use.word);
    file->Shorten(words);
    longest = std::max<uint64_t>(longest, std::filesystem::file_size(path));
  }
  EXPECT_LT(longest, 1000000u);
  EXPECT_EQ(ListOf(words).size(), 10000u);
  file = Status(KINGLET_INTERNAL, "closed");
  EXPECT_EQ(OpenAndList(path), ListOf(words));
}

TEST(UserWordsFile, TruncatedAtAnyByteItOpensWithWhatWasWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("words");
  std::vector<ListedWords> after = {{}};  // by uses that are whole
  std::vector<size_t> sizes;
  {
    UserWords words;
    auto file = UserWordsFile::Open(path, words);
    ASSERT_TRUE(file.ok()) << file.status().message();
    system::FileFacts facts;
    ASSERT_EQ(system::Look(path, facts), 0);
    EXPECT_EQ(facts.permissions, 0600u);
    sizes.push_back(FileBytes(path).size());
    for (const char* const word : {"kinglet", "wren", "caf\xC3\xA9", "kinglet", "Ringelnatz"}) {
      ASSERT_TRUE(file->Append({"the", word, 1, words.next_use()}).ok());
      words.Learn("the", word);
      after.push_back(ListOf(words));
      sizes.push_back(FileBytes(path).size());
    }
    UserWords others;
    EXPECT_EQ(UserWordsFile::Open(path, others).status().code(), KINGLET_IO_ERROR);  // locked
  }
  const std::string all = FileBytes(path);
  for (size_t size = 0; size <= all.size(); ++size) {
    SetBytes(path, all.substr(0, size));
    size_t whole = 0;
    while (whole + 1 < sizes.size() && sizes[whole + 1] <= size) ++whole;
    EXPECT_EQ(OpenAndList(path), after[whole]) << size;
    // What was damaged is gone, and a word that is learned then stays.
    UserWords words;
    auto file = UserWordsFile::Open(path, words);
    ASSERT_TRUE(file.ok() && file->Append({"", "later", 1, words.next_use()}).ok());
    words.Learn("", "later");
    file = Status(KINGLET_INTERNAL, "closed");
    EXPECT_EQ(OpenAndList(path), ListOf(words)) << size;
  }
  // One damaged byte costs one use at most.
  for (size_t at = sizes[0]; at < all.size(); ++at) {
    std::string damaged = all;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    SetBytes(path, damaged);
    uint32_t uses = 0;
    for (const auto& [word, count] : OpenAndList(path)) uses += count;
    EXPECT_GE(uses, 4u) << at;
  }
}

TEST(UserWordsFile, ReadsAFileThatIsOpenWithoutAChange) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("words");
  UserWords words, read;
  auto file = UserWordsFile::Open(path, words);
  ASSERT_TRUE(file.ok() && file->Append({"", "wren", 1, UINT32_MAX}).ok());
  std::ofstream(path, std::ios::binary | std::ios::app) << "damage";
  const std::string bytes = FileBytes(path);
  ASSERT_TRUE(UserWordsFile::Read(path, read).ok());
  EXPECT_EQ(ListOf(read), (ListedWords{{"wren", 1}}));
  EXPECT_EQ(FileBytes(path), bytes);
  EXPECT_EQ(UserWordsFile::Read(folder.Path("none"), read).code(), KINGLET_IO_ERROR);
  // The number of a use does not begin again at 0.
  EXPECT_EQ(read.next_use(), UINT32_MAX);
  read.Learn("", "kinglet");
  EXPECT_EQ(read.next_use(), UINT32_MAX);
}

// Others never get the lock while a keyboard replaces its file.
TEST(UserWordsFile, StaysLockedWhileItIsReplaced) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("words");
  UserWords words;
  auto file = UserWordsFile::Open(path, words);
  ASSERT_TRUE(file.ok());
  std::atomic<bool> is_done = false;
  std::atomic<int> opened = 0;
  std::thread other([&] {
    UserWords others;
    while (!is_done) opened += UserWordsFile::Open(path, others).ok() ? 1 : 0;
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(file->Replace(words).ok());
  is_done = true;
  other.join();
  EXPECT_EQ(opened, 0);
}

TEST(UserWordsFile, OtherFilesDoNotChange) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("notes");
  SetBytes(path, "Dear diary, today nothing happened.\n");
  UserWords words;
  EXPECT_EQ(UserWordsFile::Open(path, words).status().code(), KINGLET_CORRUPT);
  EXPECT_EQ(FileBytes(path), "Dear diary, today nothing happened.\n");
  SetBytes(path, "kinglet words 1\n" + std::string((1 << 20) + 1, '\1'));
  EXPECT_EQ(UserWordsFile::Open(path, words).status().code(), KINGLET_CORRUPT);
  EXPECT_EQ(FileBytes(path).size(), 16u + (1 << 20) + 1);
  std::filesystem::resize_file(path, (24 << 20) + 1);
  EXPECT_EQ(UserWordsFile::Open(path, words).status().code(), KINGLET_CORRUPT);
  EXPECT_EQ(UserWordsFile::Open(folder.Path("no/words"), words).status().code(), KINGLET_IO_ERROR);
  EXPECT_EQ(UserWordsFile::Open(folder.Path(""), words).status().code(), KINGLET_IO_ERROR);
}

}  // namespace
}  // namespace kinglet::typing
