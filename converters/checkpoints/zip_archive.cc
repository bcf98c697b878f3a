#include "converters/checkpoints/zip_archive.h"

#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <span>

#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"

namespace kinglet {
namespace {

// Deflate makes at most 258 bytes of two bits (RFC 1951, section 3.2.5).
constexpr uint64_t kMaxExpansion = 1032;

struct EntryCloser {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

// The error that libzip reports: that memory ran out, or what is wrong with the archive.
Status ZipFailure(zip_error_t* error, const std::string& where, const std::string& expected,
                  const std::string& after = "") {
  const bool by_system = zip_error_system_type(error) == ZIP_ET_SYS;
  if (zip_error_code_zip(error) == ZIP_ER_MEMORY ||
      (by_system && zip_error_code_system(error) == ENOMEM)) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "zip archive", where, "enough memory",
                           "none left");
  }
  return RefuseZip(where, expected, zip_error_strerror(error) + after);
}

}  // namespace

Status RefuseZip(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "zip archive", where, expected, found);
}

void ZipArchive::Closer::operator()(zip* archive) const { zip_discard(archive); }

bool ZipArchive::Recognises(const InputFile& file) {
  std::array<char, 4> head{};
  return file.size() >= head.size() &&
         file.ReadAt(0, std::as_writable_bytes(std::span(head))).ok() &&
         std::string_view(head.data(), head.size()) == "PK\x03\x04";
}

Result<ZipArchive> ZipArchive::Open(const InputFile& file) {
  ZipArchive result;
  result.file_bytes_ = file.size();
  // The archive closes its descriptor. Opening the path again could find another file.
  const int descriptor = ::dup(file.descriptor());
  if (descriptor < 0) {
    return Status::Refusal(KINGLET_IO_ERROR, "zip archive", "open", "one more file descriptor",
                           "none left");
  }
  int error = 0;
  errno = 0;
  result.archive_.reset(zip_fdopen(descriptor, 0, &error));
  // If libzip has no memory for the directory, it reports that there is no directory.
  if (result.archive_ == nullptr && errno == ENOMEM) error = ZIP_ER_MEMORY;
  if (result.archive_ == nullptr) {
    ::close(descriptor);
    struct Error {
      zip_error_t error;
      ~Error() { zip_error_fini(&error); }
    } failure;
    zip_error_init_with_code(&failure.error, error);
    return ZipFailure(&failure.error, "directory", "a zip archive", kCopyAgain);
  }
  return result;
}

uint64_t ZipArchive::entries() const {
  return static_cast<uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive_.get(), 0)));
}

std::string_view ZipArchive::name(uint64_t index) const {
  const char* raw = zip_get_name(archive_.get(), index, ZIP_FL_ENC_RAW);
  return raw == nullptr ? std::string_view() : raw;
}

std::optional<uint64_t> ZipArchive::Find(const std::string& name) const {
  const zip_int64_t index = zip_name_locate(archive_.get(), name.c_str(), ZIP_FL_ENC_RAW);
  // libzip would truncate a name at a zero byte and find another entry.
  if (index < 0 || name.find('\0') != std::string::npos) return std::nullopt;
  return static_cast<uint64_t>(index);
}

Result<ZipArchive::Entry> ZipArchive::At(uint64_t index) const {
  Entry entry = {std::string(name(index)), index, 0, 0, Compression::kStored};
  const std::string where = "entry " + QuotedName(entry.name);
  zip_stat_t info;
  zip_stat_init(&info);
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive_.get(), index, 0, &info) != 0 || (info.valid & kNeeded) != kNeeded) {
    return ZipFailure(zip_get_error(archive_.get()), where, "a size");
  }
  entry.bytes = info.size;
  entry.stored = info.comp_size;
  if (info.comp_method == ZIP_CM_DEFLATE) {
    entry.compression = Compression::kDeflated;
  } else if (info.comp_method != ZIP_CM_STORE || info.size != info.comp_size) {
    return RefuseZip(where, "a stored or deflated entry",
                     "compression method " + std::to_string(info.comp_method));
  }
  if (entry.stored > file_bytes_) {
    return RefuseZip(where, "at most the file's " + std::to_string(file_bytes_) + " bytes",
                     std::to_string(entry.stored));
  }
  if (entry.bytes / kMaxExpansion > entry.stored) {
    return RefuseZip(where,
                     "no more than " + std::to_string(entry.stored) + " deflated bytes can hold",
                     std::to_string(entry.bytes));
  }
  return entry;
}

Status ZipArchive::Read(const Entry& entry, uint64_t offset, uint64_t bytes,
                        const ByteSink& sink) const {
  const std::string where = "entry " + QuotedName(entry.name);
  const std::unique_ptr<zip_file_t, EntryCloser> file(
      zip_fopen_index(archive_.get(), entry.index, 0));
  if (file == nullptr) return ZipFailure(zip_get_error(archive_.get()), where, "readable bytes");
  const auto failed = [&](uint64_t at) {
    return ZipFailure(zip_file_get_error(file.get()), where,
                      "the " + std::to_string(entry.bytes) + " bytes of the directory",
                      " at byte " + std::to_string(at));
  };
  std::vector<std::byte> piece;
  const auto fill = [&](uint64_t at, uint64_t most) -> Status {
    piece.resize(std::min<uint64_t>(most, kPieceBytes));
    for (size_t filled = 0; filled < piece.size();) {
      const zip_int64_t got = zip_fread(file.get(), piece.data() + filled, piece.size() - filled);
      if (got <= 0) return failed(at + filled);
      filled += static_cast<size_t>(got);
    }
    return {};
  };
  // A seek saves reading but loses the checksum, so it is for long distances; libzip cannot seek in
  // deflated entries.
  uint64_t at = 0;
  if (entry.compression == Compression::kStored && offset > kPieceBytes) {
    if (zip_fseek(file.get(), static_cast<zip_int64_t>(offset), SEEK_SET) != 0) {
      return ZipFailure(zip_file_get_error(file.get()), where, "byte " + std::to_string(offset));
    }
    at = offset;
  }
  for (; at < offset; at += piece.size()) KINGLET_RETURN_IF_ERROR(fill(at, offset - at));
  for (; at < offset + bytes; at += piece.size()) {
    KINGLET_RETURN_IF_ERROR(fill(at, offset + bytes - at));
    sink(piece);
  }
  // libzip compares the checksum when it is asked for more than the last byte.
  std::byte next{};
  if (offset + bytes == entry.bytes && zip_fread(file.get(), &next, 1) != 0) {
    return failed(entry.bytes);
  }
  return {};
}

Result<std::vector<std::byte>> ZipArchive::ReadWhole(const Entry& entry) const {
  std::vector<std::byte> whole;
  whole.reserve(entry.bytes);
  KINGLET_RETURN_IF_ERROR(Read(entry, 0, entry.bytes, [&whole](std::span<const std::byte> piece) {
    whole.insert(whole.end(), piece.begin(), piece.end());
  }));
  return whole;
}

}  // namespace kinglet
