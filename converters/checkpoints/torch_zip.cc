#include "converters/checkpoints/torch_zip.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

constexpr std::string_view kPickleEntry = "data.pkl";
constexpr std::string_view kByteOrder = "byteorder";

}  // namespace

Result<TorchZipArchive> TorchZipArchive::Open(const InputFile& file) {
  KINGLET_ASSIGN_OR_RETURN(ZipArchive archive, ZipArchive::Open(file));
  TorchZipArchive result(std::move(archive));
  KINGLET_RETURN_IF_ERROR(result.FindRoot());
  KINGLET_RETURN_IF_ERROR(result.CheckByteOrder());

  KINGLET_ASSIGN_OR_RETURN(const ZipArchive::Entry entry, result.Find(std::string(kPickleEntry)));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, result.archive_.ReadWhole(entry));
  KINGLET_ASSIGN_OR_RETURN(result.graph_, ReadPickle(bytes, 0));
  return result;
}

Status TorchZipArchive::FindRoot() {
  bool found = false;
  for (uint64_t i = 0; i < archive_.entries(); ++i) {
    const std::string_view name = archive_.name(i);
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos || name.substr(slash + 1) != kPickleEntry) continue;
    if (found) {
      return RefuseZip("directory", "one pickle",
                       QuotedName(root_ + "/data.pkl") + " and " + QuotedName(name));
    }
    found = true;
    root_ = name.substr(0, slash);
  }
  if (found) return Status();
  return RefuseZip("directory", "an entry NAME/data.pkl as torch.save writes",
                   "none in " + std::to_string(archive_.entries()) + " entries");
}

Result<ZipArchive::Entry> TorchZipArchive::Find(const std::string& name) const {
  const std::string path = root_ + "/" + name;
  const std::optional<uint64_t> index = archive_.Find(path);
  if (!index) return RefuseZip("directory", "an entry " + QuotedName(path), "none");
  KINGLET_ASSIGN_OR_RETURN(ZipArchive::Entry entry, archive_.At(*index));
  // torch.save never compresses. Without compression, no entry is larger than the file.
  if (entry.compression == ZipArchive::Compression::kStored) return entry;
  return RefuseZip("entry " + QuotedName(path), "a stored entry", "a deflated one");
}

Status TorchZipArchive::CheckByteOrder() const {
  const Result<ZipArchive::Entry> entry = Find(std::string(kByteOrder));
  if (!entry.ok()) return Status();  // older PyTorch: always little-endian
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, archive_.ReadWhole(*entry));
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order == "little") return Status();
  return RefuseZip("entry " + QuotedName(root_ + "/byteorder"), "'little'", QuotedName(order));
}

Result<uint64_t> TorchZipArchive::StorageBytes(const std::string& key) const {
  KINGLET_ASSIGN_OR_RETURN(const ZipArchive::Entry entry, Find("data/" + key));
  return entry.bytes;
}

Status TorchZipArchive::ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                                    const ByteSink& sink) const {
  KINGLET_ASSIGN_OR_RETURN(const ZipArchive::Entry entry, Find("data/" + key));
  return archive_.Read(entry, offset, bytes, sink);
}

}  // namespace kinglet
