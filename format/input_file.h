// Regular files, read in pieces. Folders, pipes and devices are refused, so that reading cannot
// block or never end.
#ifndef KINGLET_FORMAT_INPUT_FILE_H_
#define KINGLET_FORMAT_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/system.h"
#include "kinglet/status.h"

namespace kinglet {

// Takes a range of bytes piece by piece, front to back. All pieces but the last have kPieceBytes.
using ByteSink = std::function<void(std::span<const std::byte> piece)>;
inline constexpr size_t kPieceBytes = size_t{1} << 20;

// Threads may share an InputFile.
class InputFile {
 public:
  // Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
  static Result<InputFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // in bytes, when the file was opened
  int descriptor() const { return file_.number(); }

  // Fills `out` with the bytes from `offset` on. Errors: KINGLET_IO_ERROR, also for a range that
  // leaves the file or a file that has become shorter.
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  // Passes the range to `sink` piece by piece.
  Status ReadInPieces(uint64_t offset, uint64_t bytes, const ByteSink& sink) const;

 private:
  explicit InputFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
  system::File file_;
  uint64_t size_ = 0;
};

// XXH3-128 of all bytes, hexadecimal. Errors: KINGLET_IO_ERROR.
Result<std::string> DigestOf(const InputFile& file);

// All bytes of a file. Errors: those of Open and ReadAt, and KINGLET_OUT_OF_MEMORY.
Result<std::string> ReadWholeFile(const std::string& path);

// The lines of a text without their newlines; a newline at the end of the text does not begin a
// line. The views are into `text`.
std::vector<std::string_view> LinesOf(std::string_view text);

// `status` with "PATH: " before its message.
Status InFile(const std::string& path, const Status& status);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_INPUT_FILE_H_
