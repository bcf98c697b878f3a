#include "converters/checkpoints/numpy_tensors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converters/checkpoints/elements.h"
#include "converters/checkpoints/npy.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/zip_archive.h"

namespace kinglet {
namespace {

constexpr std::string_view kExtension = ".npy";
// NumPy itself reads headers of at most 10,000 bytes.
constexpr uint64_t kMaxNpyHeaderBytes = 16 << 10;

// The tensor in a .npy file of `bytes` bytes, which `read` reads.
Result<CheckpointTensor> TensorOf(const std::string& file, const std::string& name, uint64_t bytes,
                                  const ByteRangeReader& read) {
  const std::string where = "array " + QuotedName(name);
  std::vector<std::byte> head;
  KINGLET_RETURN_IF_ERROR(
      read(0, std::min(bytes, kMaxNpyHeaderBytes), [&head](std::span<const std::byte> piece) {
        head.insert(head.end(), piece.begin(), piece.end());
      }));
  Result<NpyHeader> parsed = ParseNpyHeader(head);
  if (!parsed.ok()) return InFile(where, parsed.status());
  const NpyHeader& header = *parsed;
  const std::optional<ElementType> type = NumpyElementType(header.type);
  if (!type) {
    const Status status = Status::Refusal(KINGLET_INVALID_CHECKPOINT, file, where,
                                          ListNumpyTypes() + " as type", QuotedName(header.type));
    return CheckpointTensor{name, header.shape,
                            [status]() -> Result<std::vector<float>> { return status; },
                            [status]() -> Result<std::vector<int64_t>> { return status; }};
  }
  const uint64_t count = CountEntries(header.shape);
  uint64_t needed = 0;
  if (__builtin_mul_overflow(count, ElementBytes(*type), &needed) ||
      needed != bytes - header.data_begin) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "npy array", where,
                           "the bytes of values that its shape takes",
                           std::to_string(bytes - header.data_begin));
  }
  StoredElements elements = {
      file, where, *type, count,
      [read, begin = header.data_begin](uint64_t offset, uint64_t length, const ByteSink& sink) {
        return read(begin + offset, length, sink);
      }};
  return StoredTensor(name, std::move(elements), WholeView(header.shape, header.fortran_order));
}

}  // namespace

bool LooksLikeNpy(const InputFile& file) {
  std::array<std::byte, 6> head{};
  return file.size() >= head.size() && file.ReadAt(0, head).ok() && LooksLikeNpy(std::span(head));
}

bool LooksLikeNpz(const InputFile& file) {
  if (!ZipArchive::Recognises(file)) return false;
  const Result<ZipArchive> archive = ZipArchive::Open(file);
  return archive.ok() && archive->entries() > 0 && archive->name(0).ends_with(kExtension);
}

Result<CheckpointTensors> NpyTensors(const std::shared_ptr<const InputFile>& file) {
  const std::string name = std::filesystem::path(file->path()).stem().string();
  KINGLET_ASSIGN_OR_RETURN(CheckpointTensor tensor,
                           TensorOf(file->path(), name, file->size(),
                                    [file](uint64_t offset, uint64_t bytes, const ByteSink& sink) {
                                      return file->ReadInPieces(offset, bytes, sink);
                                    }));
  return CheckpointTensors{std::move(tensor)};
}

Result<CheckpointTensors> NpzTensors(const std::shared_ptr<const InputFile>& file) {
  const auto refuse = [](const std::string& where, const std::string& expected,
                         const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "npz archive", where, expected, found);
  };
  KINGLET_ASSIGN_OR_RETURN(ZipArchive opened, ZipArchive::Open(*file));
  const auto archive = std::make_shared<const ZipArchive>(std::move(opened));
  CheckpointTensors weights;
  std::unordered_set<std::string> names;
  uint64_t stored = 0;
  for (uint64_t i = 0; i < archive->entries(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(const ZipArchive::Entry entry, archive->At(i));
    const std::string where = "entry " + QuotedName(entry.name);
    if (!entry.name.ends_with(kExtension)) return refuse(where, "a name NAME.npy", "another name");
    const std::string name = entry.name.substr(0, entry.name.size() - kExtension.size());
    if (!names.insert(name).second) return refuse(where, "each name once", "the name again");
    // Entries that share bytes could claim far more than the file has.
    stored += entry.stored;
    if (stored > file->size()) {
      return refuse(where,
                    "entries of at most the file's " + std::to_string(file->size()) + " bytes",
                    std::to_string(stored));
    }
    KINGLET_ASSIGN_OR_RETURN(CheckpointTensor tensor,
                             TensorOf(file->path(), name, entry.bytes,
                                      [archive, entry, path = file->path()](
                                          uint64_t offset, uint64_t bytes, const ByteSink& sink) {
                                        return InFile(path,
                                                      archive->Read(entry, offset, bytes, sink));
                                      }));
    weights.push_back(std::move(tensor));
  }
  return weights;
}

}  // namespace kinglet
