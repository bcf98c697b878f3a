// Writing a file so that a reader sees the old one or the whole new one.
#ifndef KINGLET_FORMAT_WRITE_FILE_H_
#define KINGLET_FORMAT_WRITE_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

// A file that is whole and on the disk, under a temporary name in the folder where it shall be, so
// that it can be looked at before it takes its place. Destroyed without Commit, it is removed and
// nothing has happened.
class NewFile {
 public:
  // Writes the pieces, one after the other. A symbolic link at `path` stays and its target is
  // replaced, with the target's permissions; a new file gets 0644 less the umask. Only a regular
  // file is replaced. Errors: KINGLET_IO_ERROR naming the path and the system's reason.
  static Result<NewFile> Write(std::span<const std::span<const std::byte>> pieces,
                               const std::string& path);
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) noexcept;
  ~NewFile();

  const std::string& temporary_path() const;
  // Puts the file in its place, whatever was there. REQUIRES: the first call. Errors:
  // KINGLET_IO_ERROR; if only the last step fails, synchronising the folder, the file is in place
  // and may not survive a crash.
  Status Commit();

 private:
  struct Contents;
  explicit NewFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// Both at once, of bytes that lie together.
Status WriteFileAtomically(std::span<const std::byte> bytes, const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_WRITE_FILE_H_
