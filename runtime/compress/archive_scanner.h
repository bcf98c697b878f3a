// Finds the parts of an archive whose bytes come in pieces of any size. Decodes nothing.
#ifndef KINGLET_RUNTIME_COMPRESS_ARCHIVE_SCANNER_H_
#define KINGLET_RUNTIME_COMPRESS_ARCHIVE_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kinglet/status.h"
#include "runtime/compress/archive_format.h"

namespace kinglet::compress {

struct ScannedBlock {
  uint64_t number;
  BlockHeader header;
  std::vector<std::byte> stored;
};
// Blocks whose bytes are damaged or missing: those from `first` up to `end`, or, with an unknown
// end, an unknown number.
struct ScannedGap {
  uint64_t first;
  std::optional<uint64_t> end;
};
using ScannedPart = std::variant<ArchiveHeader, ScannedBlock, ScannedGap, ArchiveEnd>;

class ArchiveScanner {
 public:
  void Add(std::span<const std::byte> bytes);
  // No bytes follow.
  void EndOfInput() { has_ended_ = true; }
  // The next part; nullopt if more bytes are needed, or after the end. Errors: KINGLET_CORRUPT and
  // KINGLET_UNSUPPORTED_VERSION for a header that cannot be used, and KINGLET_CORRUPT for bytes
  // after the end. Holds at most one block and the bytes that were added last.
  Result<std::optional<ScannedPart>> Next();

 private:
  std::span<const std::byte> Left() const { return std::span(bytes_).subspan(at_); }
  Result<std::optional<ScannedPart>> NextBlock();
  std::optional<ScannedPart> Search();
  std::optional<ScannedPart> Lost();

  std::vector<std::byte> bytes_;
  size_t at_ = 0;
  std::optional<ArchiveHeader> header_;
  uint64_t number_ = 0;     // of the next block
  bool searching_ = false;  // after damaged bytes
  bool has_ended_ = false, found_end_ = false;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_ARCHIVE_SCANNER_H_
