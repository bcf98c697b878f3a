// A file of the words that one person types: a log of uses, each with a checksum.
#ifndef KINGLET_RUNTIME_TYPING_USER_WORDS_FILE_H_
#define KINGLET_RUNTIME_TYPING_USER_WORDS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "kinglet/status.h"
#include "runtime/typing/user_words.h"

namespace kinglet::typing {

// A use is appended in one write, so that a program that is killed loses at most that use. What is
// damaged is passed over when the file is opened, and every other use is there. The file is locked
// against other programs while it is open; only its owner may read it.
class UserWordsFile {
 public:
  // Opens the file, or makes one, and reads its words. KINGLET_IO_ERROR, also for a file that is
  // open elsewhere; KINGLET_CORRUPT for a file of another kind, which does not change.
  static Result<UserWordsFile> Open(const std::string& path, UserWords& words);

  UserWordsFile(UserWordsFile&& other) noexcept;
  UserWordsFile& operator=(UserWordsFile&& other) noexcept;
  ~UserWordsFile();

  // KINGLET_IO_ERROR; the file is then as it was.
  Status Append(const WordUses& use);
  // The words become the file's only ones: a new file takes its place, and nothing of others stays.
  // KINGLET_IO_ERROR.
  Status Replace(const UserWords& words);
  // Whether a file with the same words would be much shorter.
  bool is_long() const { return bytes_ > replaced_bytes_ + kMostAppended; }

 private:
  static constexpr uint64_t kMostAppended = 65536;

  explicit UserWordsFile(std::string path) : path_(std::move(path)) {}
  Status Lock();
  Status Fail(const char* where, const char* expected) const;

  std::string path_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0, replaced_bytes_ = 0;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_USER_WORDS_FILE_H_
