// A zip archive as a checkpoint's container: its entries by name, read in pieces. Entries are
// stored or, where a container allows it, deflated. What an archive claims is bounded by its own
// bytes.
#ifndef KINGLET_CONVERTERS_SOURCES_ZIP_ARCHIVE_H_
#define KINGLET_CONVERTERS_SOURCES_ZIP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/sources/input_file.h"
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
    uint64_t bytes;   // of its content
    uint64_t stored;  // bytes it takes in the file
    Compression compression;
  };

  // Whether the file starts like a zip archive.
  static bool Recognises(const InputFile& file);
  // Keeps the very file that was opened open. Errors: KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
  static Result<ZipArchive> Open(const InputFile& file);

  // As the directory has them, in its order.
  uint64_t entries() const;
  std::string_view name(uint64_t index) const;

  // None where no entry has this name.
  std::optional<uint64_t> Find(const std::string& name) const;
  // Refuses other compressions than these two, and more content than the bytes in the file can
  // hold.
  Result<Entry> At(uint64_t index) const;

  // Checks the entry's CRC-32 when everything to its end is read. REQUIRES: inside the entry.
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

#endif  // KINGLET_CONVERTERS_SOURCES_ZIP_ARCHIVE_H_
