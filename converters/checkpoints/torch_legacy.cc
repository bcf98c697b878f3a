#include "converters/checkpoints/torch_legacy.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

// 0x1950a86a20f9469cfc6c in little-endian order: over 64 bits, so the pickle reader keeps the
// bytes.
constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
// The pickle of the magic number takes 15 bytes in protocol 2 and 24 in protocols 4 and 5.
constexpr uint64_t kMagicPickleBytes = 32;
constexpr int64_t kProtocolVersion = 1001;

Status RefuseLegacy(uint64_t offset, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "torch stream",
                         "byte " + std::to_string(offset), expected, found);
}

bool IsMagic(const PickleNode& node) {
  const auto* integer = node.As<PickleObject>();
  if (integer == nullptr || integer->class_name != "int" || integer->arguments == nullptr) {
    return false;
  }
  const auto* digits = integer->arguments->As<PickleBytes>();
  return digits != nullptr && digits->value == kLegacyMagic;
}

Result<PickleGraph> ReadPickleAt(const InputFile& file, uint64_t begin) {
  if (begin >= file.size()) return RefuseLegacy(begin, "a pickle", "the end of the file");
  return ReadPickle(PickleIn(file, begin), begin);
}

}  // namespace

bool TorchLegacyArchive::Recognises(const InputFile& file) {
  std::array<std::byte, kMagicPickleBytes> bytes{};
  const std::span<std::byte> head(bytes.data(), std::min<uint64_t>(bytes.size(), file.size()));
  if (!file.ReadAt(0, head).ok()) return false;
  const Result<PickleGraph> magic = ReadPickle(head, 0);
  // Without memory, the file may still be one of this format.
  if (magic.status().code() == KINGLET_OUT_OF_MEMORY) throw std::bad_alloc();
  return magic.ok() && IsMagic(*magic->root);
}

Result<TorchLegacyArchive> TorchLegacyArchive::Open(const InputFile& file) {
  TorchLegacyArchive archive(file);
  uint64_t at = 0;
  KINGLET_ASSIGN_OR_RETURN(const PickleGraph magic, ReadPickleAt(file, at));
  if (!IsMagic(*magic.root)) {
    return RefuseLegacy(at, "torch.save's magic number", magic.root->Describe());
  }

  at += magic.bytes_read;
  KINGLET_ASSIGN_OR_RETURN(const PickleGraph version, ReadPickleAt(file, at));
  const auto* number = version.root->As<int64_t>();
  if (number == nullptr || *number != kProtocolVersion) {
    return RefuseLegacy(at, "protocol version " + std::to_string(kProtocolVersion),
                        number == nullptr ? version.root->Describe() : std::to_string(*number));
  }

  at += version.bytes_read;
  KINGLET_ASSIGN_OR_RETURN(const PickleGraph machine, ReadPickleAt(file, at));
  const PickleNode* little = machine.root->Find("little_endian");
  if (little == nullptr || little->As<bool>() == nullptr) {
    return RefuseLegacy(at, "a dict with little_endian as a bool", machine.root->Describe());
  }
  if (!*little->As<bool>()) return RefuseLegacy(at, "values in little-endian order", "big-endian");

  at += machine.bytes_read;
  KINGLET_ASSIGN_OR_RETURN(archive.graph_, ReadPickleAt(file, at));
  at += archive.graph_.bytes_read;
  KINGLET_ASSIGN_OR_RETURN(const PickleGraph keys, ReadPickleAt(file, at));
  KINGLET_RETURN_IF_ERROR(archive.LocateStorages(*keys.root, at + keys.bytes_read));
  return archive;
}

Status TorchLegacyArchive::LocateStorages(const PickleNode& keys, uint64_t begin) {
  const auto* list = keys.As<PickleList>();
  if (list == nullptr) {
    return RefuseLegacy(begin, "a list of storage keys before it", keys.Describe());
  }
  uint64_t at = begin;
  for (const PickleNode* item : list->items) {
    const auto* key = item->As<std::string>();
    if (key == nullptr) {
      return RefuseLegacy(begin, "storage keys as str before it", item->Describe());
    }
    const std::string name = "storage " + QuotedName(*key);
    const auto claimed = graph_.storages.find(*key);
    if (claimed == graph_.storages.end()) {
      return RefuseLegacy(at, "a storage the pickle mentions", name);
    }
    if (!claimed->second.type) {
      // The storage's size, and so the offset of the next one, is unknown.
      return RefuseLegacy(at, name + " of a class whose element size is known",
                          QuotedName(claimed->second.class_name));
    }
    std::array<std::byte, sizeof(uint64_t)> word{};
    if (file_->size() - at < word.size()) {
      return RefuseLegacy(at, "the element count of " + name,
                          "the end at " + std::to_string(file_->size()) + kCopyAgain);
    }
    KINGLET_RETURN_IF_ERROR(file_->ReadAt(at, word));
    const auto elements = LoadLittle<uint64_t>(word.data());
    if (elements != claimed->second.elements) {
      return RefuseLegacy(
          at,
          name + " of " + std::to_string(claimed->second.elements) + " elements as in the pickle",
          std::to_string(elements));
    }
    at += word.size();
    const uint64_t element_bytes = ElementBytes(*claimed->second.type);
    const uint64_t remaining = file_->size() - at;
    if (elements > remaining / element_bytes) {
      return RefuseLegacy(at, std::to_string(elements) + " elements of " + name,
                          std::to_string(remaining) + " bytes to the end" + kCopyAgain);
    }
    const Storage storage = {at, elements * element_bytes};
    if (!storages_.emplace(*key, storage).second) {
      return RefuseLegacy(at, "each storage once", name + " again");
    }
    at += storage.bytes;
  }
  return Status();
}

Result<uint64_t> TorchLegacyArchive::StorageBytes(const std::string& key) const {
  const auto storage = storages_.find(key);
  if (storage != storages_.end()) return storage->second.bytes;
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "torch stream", "list of storage keys",
                         "storage " + QuotedName(key), "no such key");
}

Status TorchLegacyArchive::ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                                       const ByteSink& sink) const {
  return file_->ReadInPieces(storages_.at(key).begin + offset, bytes, sink);
}

}  // namespace kinglet
