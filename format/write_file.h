// Writes a file atomically: at any moment a reader sees the old file or the complete new file.
#ifndef KINGLET_FORMAT_WRITE_FILE_H_
#define KINGLET_FORMAT_WRITE_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

// A complete file on the disk, still under a temporary name in its final folder, so that it can be
// checked before it is renamed. A NewFile that is destroyed without Commit removes its file and
// changes nothing else.
class NewFile {
 public:
  // Writes the pieces one after the other. A file at `path` will be replaced and its permissions
  // kept; of a symbolic link the target is replaced and the link stays. A new file gets 0644 less
  // the umask. Only a regular file can be replaced. Errors: KINGLET_IO_ERROR naming the path and
  // the system's reason.
  static Result<NewFile> Write(std::span<const std::span<const std::byte>> pieces,
                               const std::string& path);
  // An empty file that Append fills; errors and rules are those of Write. Seal comes before Commit.
  static Result<NewFile> Create(const std::string& path);
  Status Append(std::span<const std::byte> bytes);
  // Writes everything to the disk and closes the file.
  Status Seal();
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) noexcept;
  ~NewFile();

  const std::string& temporary_path() const;
  // Renames the file to its path. REQUIRES: sealed, by Write or Seal; the first call. Errors:
  // KINGLET_IO_ERROR. If only the synchronisation of the folder fails, the file has its path but
  // might not survive a crash.
  Status Commit();

 private:
  class TemporaryFile;
  struct Contents;
  explicit NewFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// The name of a file that RemoveTemporaryFiles removes while the object lives. Further names than
// the 16 that a program has at once, and names of 4096 bytes or more, are not registered.
class TemporaryName {
 public:
  explicit TemporaryName(const std::string& path);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();

 private:
  int slot_ = -1;
};

// Removes the registered files. For a handler of a signal that ends the program: calls only
// functions that POSIX allows there.
void RemoveTemporaryFiles();

// NewFile::Write of one piece, and Commit.
Status WriteFileAtomically(std::span<const std::byte> bytes, const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_WRITE_FILE_H_
