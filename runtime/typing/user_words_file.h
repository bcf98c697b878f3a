// A file of the words that one person types: a log of uses, each with a checksum.
#ifndef KINGLET_RUNTIME_TYPING_USER_WORDS_FILE_H_
#define KINGLET_RUNTIME_TYPING_USER_WORDS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "format/system.h"
#include "kinglet/status.h"
#include "runtime/typing/user_words.h"

namespace kinglet::typing {

// A use is appended in one write, so that a program that is killed loses at most that use. What is
// damaged is passed over when the file is opened, and every other use is there. The file is locked
// against other programs while it is open; only its owner may read it.
class UserWordsFile {
 public:
  // Opens the file, or makes one, and reads its words. KINGLET_IO_ERROR, also for a file that is
  // open elsewhere; KINGLET_CORRUPT for a file of another kind, or with more than 1 MiB of damage,
  // which does not change.
  static Result<UserWordsFile> Open(const std::string& path, UserWords& words);
  // Reads the words of a file, which may be open elsewhere and does not change. Errors as for Open.
  static Status Read(const std::string& path, UserWords& words);

  // KINGLET_IO_ERROR; the file is then as it was.
  Status Append(const WordUses& use);
  // The words become the file's only ones: a new file takes its place, and nothing of others stays.
  // KINGLET_IO_ERROR; the file is then as it was, unless only its folder could not be synchronised.
  Status Replace(const UserWords& words);
  // Replace, if the file would be much shorter then. A failure is tried again when the file has
  // grown as much once more. REQUIRES: `words` are the file's.
  void Shorten(const UserWords& words);

 private:
  static constexpr uint64_t kMostAppended = 65536;

  explicit UserWordsFile(std::string path) : path_(std::move(path)) {}
  Status Lock();
  // `is_whole` becomes whether there was no damage.
  Status ReadAll(UserWords& words, bool& is_whole);
  // The file becomes one without words.
  Status Begin();
  // At the end. KINGLET_IO_ERROR; the file is then as it was.
  Status Write(std::string_view bytes);
  Status Fail(const char* where, const char* expected, int reason) const;

  std::string path_;
  system::File file_;
  uint64_t bytes_ = 0, replaced_bytes_ = 0;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_USER_WORDS_FILE_H_
