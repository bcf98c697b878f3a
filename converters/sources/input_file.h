// A regular file opened for reading in pieces. Folders, pipes and devices are refused, so that a
// read can neither block nor go on for ever.
#ifndef KINGLET_CONVERTERS_SOURCES_INPUT_FILE_H_
#define KINGLET_CONVERTERS_SOURCES_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Takes a range of bytes piece by piece, front to back. Every piece but the last has kPieceBytes.
using ByteSink = std::function<void(std::span<const std::byte> piece)>;
inline constexpr size_t kPieceBytes = size_t{1} << 20;

// Owns the descriptor. Movable; reading changes nothing in it.
class InputFile {
 public:
  // Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
  static Result<InputFile> Open(const std::string& path);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // bytes, when it was opened
  int descriptor() const { return descriptor_; }

  // Fills `out` from `offset` on. Refuses a range that leaves the file, also when the file has
  // become shorter since it was opened (KINGLET_IO_ERROR).
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  // The same range in pieces, so that memory stays small.
  Status ReadInPieces(uint64_t offset, uint64_t bytes, const ByteSink& sink) const;

 private:
  friend Result<std::string> ReadWholeFileOrPipe(const std::string& path);
  InputFile(std::string path, int descriptor, uint64_t size);
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// XXH3-128 of all bytes, hexadecimal. Errors: KINGLET_IO_ERROR.
Result<std::string> DigestOf(const InputFile& file);

// A whole file as bytes. Errors: as above, and KINGLET_OUT_OF_MEMORY.
Result<std::string> ReadWholeFile(const std::string& path);

// The same, or all that comes out of a pipe until its writers are done, as long as that takes. More
// than kMaxPipeBytes are refused: KINGLET_OUT_OF_MEMORY.
inline constexpr uint64_t kMaxPipeBytes = uint64_t{1} << 30;
Result<std::string> ReadWholeFileOrPipe(const std::string& path);

// The lines of a text, without their newlines. One at the end of the text begins no line.
// REQUIRES: the text outlives them.
std::vector<std::string_view> LinesOf(std::string_view text);

// `status` with the path in front of its text.
Status InFile(const std::string& path, const Status& status);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_INPUT_FILE_H_
