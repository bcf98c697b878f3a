#include "converters/sources/source_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <new>
#include <span>
#include <utility>

#include "converters/sources/checkpoint_path.h"
#include "converters/sources/codes_file.h"
#include "converters/sources/elements.h"
#include "converters/sources/input_file.h"
#include "converters/sources/numpy_tensors.h"
#include "converters/sources/quoted.h"
#include "converters/sources/safetensors.h"
#include "converters/sources/shard_index.h"
#include "converters/sources/tensor_bundle.h"
#include "format/digest.h"

namespace kinglet {
namespace {

// Why a node is not a state dict: "list", "dict with list as 'layers'".
std::string DescribeOther(const PickleNode& node) {
  std::string text = node.Describe();
  const auto* dict = node.As<PickleDict>();
  if (dict == nullptr) return text;
  for (const auto& [key, value] : dict->items) {
    const auto* name = key->As<std::string>();
    if (name == nullptr) return text + " with a key of type " + key->Describe();
    if (value->As<PickleTensor>() == nullptr) {
      return text + " with " + value->Describe() + " as " + QuotedName(*name);
    }
  }
  return text;
}

SavedModules ModulesOf(const PickleNode& root) {
  if (IsModule(root)) return {&root, nullptr};
  const auto* list = root.As<PickleList>();
  if (list == nullptr || list->items.empty() || !IsModule(*list->items[0])) return {};
  const bool has_criterion = list->items.size() > 1 && IsModule(*list->items[1]);
  return {list->items[0], has_criterion ? list->items[1] : nullptr};
}

// The tensors of whole modules.
Result<StateDict> TensorsOf(const SavedModules& modules) {
  KINGLET_ASSIGN_OR_RETURN(StateDict tensors, ModuleTensors(*modules.network, ""));
  if (modules.criterion != nullptr) {
    KINGLET_ASSIGN_OR_RETURN(const StateDict more, ModuleTensors(*modules.criterion, "criterion."));
    tensors.insert(tensors.end(), more.begin(), more.end());
  }
  return tensors;
}

// The state dict inside a dict that also has a step, a configuration or an optimiser; null where
// there is none.
const PickleNode* NetworkInside(const PickleNode& root) {
  for (const char* key : {"net", "model", "state_dict"}) {
    const PickleNode* node = root.Find(key);
    if (node != nullptr && node->As<PickleDict>() != nullptr) return node;
  }
  return nullptr;
}

Result<StateDict> TensorsOf(const PickleNode& dict, const std::string& path) {
  Result<StateDict> tensors = AsStateDict(dict);
  if (tensors.ok() || tensors.status().code() != KINGLET_INVALID_CHECKPOINT) return tensors;
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", path,
                         "a state dict, alone or as 'net', 'model' or 'state_dict' of a dict, or a "
                         "whole module, alone or first in a list",
                         DescribeOther(dict));
}

// The output layer that OpenNMT-py saves beside its "model".
Status AddGenerator(const PickleNode& root, const std::string& path, StateDict& tensors) {
  const PickleNode* model = root.Find("model");
  const PickleNode* generator = root.Find("generator");
  if (model == nullptr || generator == nullptr || generator->As<PickleDict>() == nullptr) return {};
  KINGLET_ASSIGN_OR_RETURN(const StateDict more, TensorsOf(*generator, path));
  for (const NamedTensor& named : more) {
    tensors.push_back({"generator." + named.name, named.tensor});
  }
  return {};
}

// Bounds the memory that views of one storage in a small file can ask for.
Status CheckTotalEntries(const StateDict& tensors, const InputFile& file) {
  const uint64_t limit = 2 * file.size();
  uint64_t total = 0;
  for (const NamedTensor& named : tensors) {
    const uint64_t entries = CountEntries(named.tensor->shape);
    if (entries > limit - total) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", file.path(),
          "at most " + std::to_string(limit) + " entries in all tensors, twice the file's bytes",
          "more, up to tensor " + QuotedName(named.name));
    }
    total += entries;
  }
  return {};
}

// A text that is equal for tensors of equal shape that read the same elements.
std::string PlaceOf(const InputFile& file, const PickleTensor& tensor) {
  std::string place = file.path() + " " + tensor.storage_key + " " + std::to_string(tensor.offset);
  for (const uint64_t stride : tensor.strides) place += " " + std::to_string(stride);
  return place;
}

SourceTensor TorchTensor(const NamedTensor& named, const std::shared_ptr<const Checkpoint>& file) {
  const PickleTensor& tensor = *named.tensor;  // the checkpoint's
  SourceTensor source;
  source.name = named.name;
  source.shape = tensor.shape;
  source.values = [file, &tensor] { return file->ReadFloats(tensor); };
  source.integers = [file, &tensor] { return file->ReadIntegers(tensor); };
  source.place = PlaceOf(file->file(), tensor);
  if (!tensor.shape.empty()) {
    source.rows = [file, &tensor](uint64_t first, uint64_t count) {
      const StridedView view = RowsOf({tensor.offset, tensor.shape, tensor.strides}, first, count);
      PickleTensor part = tensor;
      part.offset = view.offset;
      part.shape = view.shape;
      return file->ReadFloats(part);
    };
  }
  return source;
}

Status ReadTorchFile(const std::shared_ptr<const InputFile>& file, SourceFile& source) {
  KINGLET_ASSIGN_OR_RETURN(source.checkpoint, Checkpoint::Open(file));
  const PickleNode& root = source.checkpoint->root();
  source.modules = ModulesOf(root);
  const PickleNode* inside = NetworkInside(root);
  KINGLET_ASSIGN_OR_RETURN(StateDict tensors,
                           source.modules.network != nullptr
                               ? TensorsOf(source.modules)
                               : TensorsOf(inside != nullptr ? *inside : root, file->path()));
  KINGLET_RETURN_IF_ERROR(AddGenerator(root, file->path(), tensors));
  KINGLET_RETURN_IF_ERROR(CheckTotalEntries(tensors, *file));
  for (const NamedTensor& named : tensors) {
    source.tensors.push_back(TorchTensor(named, source.checkpoint));
  }
  const PickleNode* step = inside != nullptr ? root.Find("step") : nullptr;
  if (step != nullptr && step->As<int64_t>() != nullptr) source.step = *step->As<int64_t>();
  return {};
}

// The first bytes of a file, for the message that no container has them.
std::string HeadText(const InputFile& file) {
  std::array<std::byte, 8> bytes{};
  const std::span<std::byte> head(bytes.data(), std::min<uint64_t>(bytes.size(), file.size()));
  if (head.empty()) return "an empty file";
  if (!file.ReadAt(0, head).ok()) return "unreadable bytes";
  std::string text = "bytes";
  for (const std::byte byte : head) text += " " + HexByte(byte);
  return text;
}

struct ContainerReader {
  bool (*recognises)(const InputFile& file);
  Result<SourceWeights> (*open)(const std::shared_ptr<const InputFile>& file);
};
// Containers that hold tensors only. Any zip archive that is not an .npz is tried as torch.save's.
constexpr std::array<ContainerReader, 4> kContainers = {{{LooksLikeNpz, NpzTensors},
                                                         {LooksLikeNpy, NpyTensors},
                                                         {LooksLikeSafetensors, SafetensorsTensors},
                                                         {LooksLikeCodes, CodesTensors}}};

Status ReadContainer(const std::shared_ptr<const InputFile>& file, SourceFile& source) {
  for (const ContainerReader& container : kContainers) {
    if (!container.recognises(*file)) continue;
    Result<SourceWeights> tensors = container.open(file);
    // An error of reading names the file already.
    if (tensors.status().code() == KINGLET_IO_ERROR) return tensors.status();
    if (!tensors.ok()) return InFile(file->path(), tensors.status());
    source.tensors = std::move(tensors).value();
    return {};
  }
  if (Checkpoint::Recognises(*file)) return ReadTorchFile(file, source);
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, file->path(), "byte 0",
                         "a file of torch.save, safetensors, numpy (.npz, .npy), a TensorFlow "
                         "checkpoint's .index or a text of codes",
                         HeadText(*file));
}

Result<SourceFile> OpenOneFile(InputFile opened) {
  const auto file = std::make_shared<const InputFile>(std::move(opened));
  SourceFile source;
  source.path = file->path();
  source.bytes = file->size();
  source.step = StepOf(source.path);
  KINGLET_RETURN_IF_ERROR(ReadContainer(file, source));
  KINGLET_ASSIGN_OR_RETURN(source.digest, DigestOf(*file));
  return source;
}

Result<SourceFile> OpenBundle(InputFile index) {
  SourceFile source;
  source.path = index.path();
  source.step = StepOf(source.path);
  KINGLET_ASSIGN_OR_RETURN(TensorBundle bundle,
                           OpenTensorBundle(std::make_shared<const InputFile>(std::move(index))));
  source.tensors = std::move(bundle.tensors);
  std::string digests;
  for (const auto& file : bundle.files) {
    source.bytes += file->size();
    KINGLET_ASSIGN_OR_RETURN(const std::string digest, DigestOf(*file));
    digests += digest;
  }
  source.digest = HexText(DigestOf(std::as_bytes(std::span<const char>(digests))));
  return source;
}

Result<SourceFile> OpenShards(const InputFile& opened) {
  KINGLET_ASSIGN_OR_RETURN(ShardIndex index, ReadShardIndex(opened));
  SourceFile source;
  source.path = opened.path();
  const std::filesystem::path folder = std::filesystem::path(source.path).parent_path();
  std::string digests;
  for (const std::string& name : index.files) {
    KINGLET_ASSIGN_OR_RETURN(InputFile file, InputFile::Open((folder / name).string()));
    KINGLET_ASSIGN_OR_RETURN(SourceFile shard, OpenOneFile(std::move(file)));
    for (SourceTensor& tensor : shard.tensors) {
      const auto place = index.file_of.find(tensor.name);
      if (place == index.file_of.end() || place->second != name) {
        return Status::Refusal(KINGLET_INVALID_CHECKPOINT, source.path, shard.path,
                               "only tensors that the index puts there", QuotedName(tensor.name));
      }
      index.file_of.erase(place);
      source.tensors.push_back(std::move(tensor));
    }
    source.bytes += shard.bytes;
    digests += shard.digest;
  }
  if (!index.file_of.empty()) {
    const auto& [tensor, name] = *index.file_of.begin();
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, source.path, "tensor " + QuotedName(tensor),
                           "it in " + QuotedName(name) + " as the index says", "none");
  }
  source.digest = HexText(DigestOf(std::as_bytes(std::span<const char>(digests))));
  return source;
}

}  // namespace

Result<SourceFile> OpenSourceFile(const std::string& path) try {
  Result<InputFile> named = InputFile::Open(path);
  if (named.status().code() == KINGLET_NOT_FOUND) {
    // The prefix of a TensorFlow checkpoint is the name of no file.
    Result<InputFile> index = InputFile::Open(path + ".index");
    if (index.ok() && LooksLikeTensorBundle(*index)) return OpenBundle(std::move(index).value());
  }
  if (!named.ok()) return named.status();
  InputFile opened = std::move(named).value();
  if (LooksLikeTensorBundle(opened)) return OpenBundle(std::move(opened));
  return LooksLikeShardIndex(opened) ? OpenShards(opened) : OpenOneFile(std::move(opened));
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "opening", "memory for its names", "none");
}

}  // namespace kinglet
