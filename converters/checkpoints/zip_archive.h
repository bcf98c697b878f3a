// Zip archives (PKWARE's APPNOTE.TXT) as containers of checkpoints: entries by name, read in
// pieces. Entries are stored or deflated. No entry may claim more content than its bytes can
// encode.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_ZIP_ARCHIVE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_ZIP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/input_file.h"
#include "kinglet/status.h"

struct zip;

namespace kinglet {

// "zip archive: WHERE: expected EXPECTED, found FOUND" as KINGLET_INVALID_CHECKPOINT.
Status RefuseZip(const std::string& where, const std::string& expected, const std::string& found);

class ZipArchive {
 public:
  enum class Compression : uint8_t { kStored, kDeflated };
  struct Entry {
    std::string name;
    uint64_t index;
    uint64_t bytes;   // size of its content
    uint64_t stored;  // bytes that it takes in the file, after compression
    Compression compression;
  };

  // Whether the file starts like a zip archive.
  static bool Recognises(const InputFile& file);
  // Duplicates the file's descriptor: `file` may be closed. Errors: KINGLET_INVALID_CHECKPOINT,
  // KINGLET_IO_ERROR.
  static Result<ZipArchive> Open(const InputFile& file);

  // The number of entries, and their names in the directory's order.
  uint64_t entries() const;
  std::string_view name(uint64_t index) const;

  // The index of the entry of this name; nullopt if there is none.
  std::optional<uint64_t> Find(const std::string& name) const;
  // Errors: KINGLET_INVALID_CHECKPOINT for other compressions, and for more content than the
  // entry's bytes can encode.
  Result<Entry> At(uint64_t index) const;

  // Passes bytes of the content to `sink` piece by piece. Compares the CRC-32 when the range ends
  // with the entry and was read from its first byte. REQUIRES: the range lies in the content.
  Status Read(const Entry& entry, uint64_t offset, uint64_t bytes, const ByteSink& sink) const;
  Result<std::vector<std::byte>> ReadWhole(const Entry& entry) const;

 private:
  struct Closer {
    void operator()(zip* archive) const;
  };
  ZipArchive() = default;

  std::unique_ptr<zip, Closer> archive_;
  uint64_t file_bytes_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_ZIP_ARCHIVE_H_
