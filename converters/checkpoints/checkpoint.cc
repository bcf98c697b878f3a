#include "converters/checkpoints/checkpoint.h"

#include <array>
#include <new>
#include <string_view>
#include <unordered_map>

#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/torch_archive.h"
#include "converters/checkpoints/torch_legacy.h"
#include "converters/checkpoints/torch_zip.h"
#include "converters/checkpoints/zip_archive.h"

namespace kinglet {
namespace {

// A pickle alone, without storages.
class PlainPickle final : public TorchArchive {
 public:
  Status Read(const InputFile& file) {
    KINGLET_ASSIGN_OR_RETURN(graph_, ReadPickle(PickleIn(file), 0));
    return {};
  }
  Result<uint64_t> StorageBytes(const std::string& key) const override {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "pickle", "storage " + QuotedName(key),
                           "a file of torch.save, which contains it",
                           "a pickle alone (save the weights with torch.save)");
  }
  Status ReadStorage(const std::string&, uint64_t, uint64_t, const ByteSink&) const override {
    return {};  // StorageBytes has refused the storage
  }
};

Result<std::unique_ptr<const TorchArchive>> OpenArchive(const InputFile& file) {
  if (ZipArchive::Recognises(file)) {
    KINGLET_ASSIGN_OR_RETURN(TorchZipArchive archive, TorchZipArchive::Open(file));
    return std::unique_ptr<const TorchArchive>(new TorchZipArchive(std::move(archive)));
  }
  if (LooksLikePickle(file) && !TorchLegacyArchive::Recognises(file)) {
    auto archive = std::make_unique<PlainPickle>();
    KINGLET_RETURN_IF_ERROR(archive->Read(file));
    return std::unique_ptr<const TorchArchive>(std::move(archive));
  }
  KINGLET_ASSIGN_OR_RETURN(TorchLegacyArchive archive, TorchLegacyArchive::Open(file));
  return std::unique_ptr<const TorchArchive>(new TorchLegacyArchive(std::move(archive)));
}

}  // namespace

bool LooksLikePickle(const InputFile& file) {
  std::array<std::byte, 2> head{};
  return file.size() > head.size() && file.ReadAt(0, head).ok() && head[0] == std::byte{0x80} &&
         head[1] >= std::byte{2} && head[1] <= std::byte{5};
}

struct Checkpoint::Contents {
  std::shared_ptr<const InputFile> file;
  std::unique_ptr<const TorchArchive> archive;
};

Checkpoint::Checkpoint() = default;
Checkpoint::~Checkpoint() = default;

bool Checkpoint::Recognises(const InputFile& file) {
  return ZipArchive::Recognises(file) || TorchLegacyArchive::Recognises(file);
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(std::shared_ptr<const InputFile> file) {
  try {
    std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
    checkpoint->contents_ = std::make_unique<Contents>();
    Contents& contents = *checkpoint->contents_;
    contents.file = std::move(file);
    Result<std::unique_ptr<const TorchArchive>> archive = OpenArchive(*contents.file);
    if (!archive.ok()) return InFile(contents.file->path(), archive.status());
    contents.archive = std::move(archive).value();
    return checkpoint;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "checkpoint", "opening",
                           "memory for its directory", "none");
  }
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  return Open(std::make_shared<const InputFile>(std::move(file)));
}

const InputFile& Checkpoint::file() const { return *contents_->file; }

const PickleNode& Checkpoint::root() const { return *contents_->archive->graph().root; }

Result<StoredElements> Checkpoint::ElementsOf(const PickleTensor& tensor) const {
  const std::string& path = contents_->file->path();
  if (tensor.bytes != nullptr) return ElementsInPickle(tensor, path);
  const std::string where = "storage " + QuotedName(tensor.storage_key);
  const TorchArchive& archive = *contents_->archive;
  const Result<uint64_t> bytes = archive.StorageBytes(tensor.storage_key);
  if (!bytes.ok()) return InFile(path, bytes.status());
  const uint64_t element = ElementBytes(tensor.type);
  if (*bytes / element != tensor.storage_elements || *bytes % element != 0) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, where,
                           std::to_string(tensor.storage_elements) + " elements of " +
                               std::to_string(element) + " bytes as in the pickle",
                           std::to_string(*bytes) + " bytes");
  }
  return StoredElements{path,
                        where,
                        tensor.type,
                        tensor.storage_elements,
                        [&archive, &path, &key = tensor.storage_key](
                            uint64_t offset, uint64_t count, const ByteSink& sink) {
                          return InFile(path, archive.ReadStorage(key, offset, count, sink));
                        },
                        tensor.negated};
}

Result<std::vector<float>> Checkpoint::ReadFloats(const PickleTensor& tensor) const {
  KINGLET_ASSIGN_OR_RETURN(const StoredElements elements, ElementsOf(tensor));
  return kinglet::ReadFloats(elements, {tensor.offset, tensor.shape, tensor.strides});
}

Result<std::vector<int64_t>> Checkpoint::ReadIntegers(const PickleTensor& tensor) const {
  KINGLET_ASSIGN_OR_RETURN(const StoredElements elements, ElementsOf(tensor));
  return kinglet::ReadIntegers(elements, {tensor.offset, tensor.shape, tensor.strides});
}

Result<StateDict> AsStateDict(const PickleNode& node) {
  const auto refuse = [](const std::string& where, const std::string& expected,
                         const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "state dict", where, expected, found);
  };
  const auto* dict = node.As<PickleDict>();
  if (dict == nullptr) return refuse("object", "a dict of names to tensors", node.Describe());
  try {
    StateDict tensors;
    std::unordered_map<std::string_view, size_t> places;
    for (const auto& [key, value] : dict->items) {
      const auto* name = key->As<std::string>();
      if (name == nullptr) {
        return refuse("entry " + std::to_string(tensors.size()), "a name as str", key->Describe());
      }
      const auto* tensor = value->As<PickleTensor>();
      if (tensor == nullptr) return refuse(QuotedName(*name), "a tensor", value->Describe());
      // As in Python, a repeated name keeps its position and takes the later value.
      const auto [place, added] = places.try_emplace(*name, tensors.size());
      if (added) {
        tensors.push_back(NamedTensor{*name, tensor});
      } else {
        tensors[place->second].tensor = tensor;
      }
    }
    return tensors;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "state dict", "reading", "memory for its names",
                           "none");
  }
}

}  // namespace kinglet
