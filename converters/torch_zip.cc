#include "converters/torch_zip.h"

#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "converters/quoted.h"

namespace kinglet {
namespace {

constexpr std::string_view kPickle = "data.pkl";
constexpr std::string_view kByteOrder = "byteorder";

Status Refuse(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "zip archive", where, expected, found);
}

struct EntryCloser {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

}  // namespace

void TorchZipArchive::Closer::operator()(zip* archive) const { zip_discard(archive); }

bool TorchZipArchive::Recognises(const InputFile& file) {
  std::array<char, 4> head{};
  return file.size() >= head.size() &&
         file.ReadAt(0, std::as_writable_bytes(std::span(head))).ok() &&
         std::string_view(head.data(), head.size()) == "PK\x03\x04";
}

Result<TorchZipArchive> TorchZipArchive::Open(const InputFile& file) {
  TorchZipArchive result;
  result.file_bytes_ = file.size();
  // The archive gets a descriptor of its own, which it closes, of the very file that was opened.
  const int descriptor = ::dup(file.descriptor());
  if (descriptor < 0) {
    return Status::Refusal(KINGLET_IO_ERROR, "zip archive", "open", "one more descriptor", "none");
  }
  int error = 0;
  result.archive_.reset(zip_fdopen(descriptor, 0, &error));
  if (result.archive_ == nullptr) {
    ::close(descriptor);
    zip_error_t text;
    zip_error_init_with_code(&text, error);
    const std::string found = zip_error_strerror(&text);
    zip_error_fini(&text);
    return Refuse("directory", "a zip archive", found);
  }
  KINGLET_RETURN_IF_ERROR(result.FindRoot());
  KINGLET_RETURN_IF_ERROR(result.CheckByteOrder());

  KINGLET_ASSIGN_OR_RETURN(const Entry entry, result.Find(std::string(kPickle)));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, result.ReadWhole(entry));
  KINGLET_ASSIGN_OR_RETURN(result.graph_, ReadPickle(bytes, 0));
  return result;
}

Status TorchZipArchive::FindRoot() {
  const zip_int64_t entries = zip_get_num_entries(archive_.get(), 0);
  bool found = false;
  for (zip_int64_t i = 0; i < entries; ++i) {
    const char* raw = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (raw == nullptr) continue;
    const std::string_view name = raw;
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos || name.substr(slash + 1) != kPickle) continue;
    if (found) {
      return Refuse("directory", "one pickle",
                    QuotedName(root_ + "/data.pkl") + " and " + QuotedName(name));
    }
    found = true;
    root_ = name.substr(0, slash);
  }
  if (found) return Status();
  return Refuse("directory", "an entry NAME/data.pkl as torch.save writes",
                "none in " + std::to_string(entries) + " entries");
}

Result<TorchZipArchive::Entry> TorchZipArchive::Find(const std::string& name) const {
  const std::string path = root_ + "/" + name;
  const zip_int64_t index = zip_name_locate(archive_.get(), path.c_str(), ZIP_FL_ENC_RAW);
  // A name with a zero byte would be cut short there and find another entry.
  if (index < 0 || path.find('\0') != std::string::npos) {
    return Refuse("directory", "an entry " + QuotedName(path), "none");
  }
  zip_stat_t info;
  zip_stat_init(&info);
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(index), 0, &info) != 0 ||
      (info.valid & kNeeded) != kNeeded) {
    return Refuse("entry " + QuotedName(path), "a size", zip_strerror(archive_.get()));
  }
  // torch.save never compresses; refusing compression also keeps sizes within the file's.
  if (info.comp_method != ZIP_CM_STORE || info.size != info.comp_size) {
    return Refuse("entry " + QuotedName(path), "a stored entry",
                  "compression method " + std::to_string(info.comp_method));
  }
  if (info.size > file_bytes_) {
    return Refuse("entry " + QuotedName(path),
                  "at most the file's " + std::to_string(file_bytes_) + " bytes",
                  std::to_string(info.size));
  }
  return Entry{path, static_cast<uint64_t>(index), info.size};
}

Status TorchZipArchive::ReadEntry(const Entry& entry, uint64_t offset, uint64_t bytes,
                                  const ByteSink& sink) const {
  const std::string where = "entry " + QuotedName(entry.path);
  const std::unique_ptr<zip_file_t, EntryCloser> file(
      zip_fopen_index(archive_.get(), entry.index, 0));
  if (file == nullptr) return Refuse(where, "readable bytes", zip_strerror(archive_.get()));
  if (offset != 0 && zip_fseek(file.get(), static_cast<zip_int64_t>(offset), SEEK_SET) != 0) {
    return Refuse(where, "byte " + std::to_string(offset), zip_file_strerror(file.get()));
  }
  std::vector<std::byte> piece(std::min<uint64_t>(bytes, kPieceBytes));
  const auto failed = [&](uint64_t at) {
    return Refuse(where, "the " + std::to_string(entry.bytes) + " bytes of the directory",
                  zip_file_strerror(file.get()) + (" at byte " + std::to_string(at)));
  };
  for (uint64_t done = 0; done < bytes; done += piece.size()) {
    piece.resize(std::min<uint64_t>(bytes - done, kPieceBytes));
    for (size_t filled = 0; filled < piece.size();) {
      const zip_int64_t got = zip_fread(file.get(), piece.data() + filled, piece.size() - filled);
      if (got <= 0) return failed(offset + done + filled);
      filled += static_cast<size_t>(got);
    }
    sink(piece);
  }
  // libzip compares the checksum when it is asked for what lies behind the last byte.
  std::byte behind{};
  if (offset + bytes == entry.bytes && zip_fread(file.get(), &behind, 1) != 0) {
    return failed(entry.bytes);
  }
  return Status();
}

Result<std::vector<std::byte>> TorchZipArchive::ReadWhole(const Entry& entry) const {
  std::vector<std::byte> whole;
  whole.reserve(entry.bytes);
  KINGLET_RETURN_IF_ERROR(
      ReadEntry(entry, 0, entry.bytes, [&whole](std::span<const std::byte> piece) {
        whole.insert(whole.end(), piece.begin(), piece.end());
      }));
  return whole;
}

Status TorchZipArchive::CheckByteOrder() const {
  const Result<Entry> entry = Find(std::string(kByteOrder));
  if (!entry.ok()) return Status();  // older than the entry: always little-endian
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadWhole(*entry));
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order == "little") return Status();
  return Refuse("entry " + QuotedName(root_ + "/byteorder"), "'little'", QuotedName(order));
}

Result<uint64_t> TorchZipArchive::StorageBytes(const std::string& key) const {
  KINGLET_ASSIGN_OR_RETURN(const Entry entry, Find("data/" + key));
  return entry.bytes;
}

Status TorchZipArchive::ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                                    const ByteSink& sink) const {
  KINGLET_ASSIGN_OR_RETURN(const Entry entry, Find("data/" + key));
  return ReadEntry(entry, offset, bytes, sink);
}

}  // namespace kinglet
