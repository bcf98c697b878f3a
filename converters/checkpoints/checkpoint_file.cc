#include "converters/checkpoints/checkpoint_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/codes_file.h"
#include "converters/checkpoints/elements.h"
#include "converters/checkpoints/foreign_file.h"
#include "converters/checkpoints/named_file.h"
#include "converters/checkpoints/numpy_tensors.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/checkpoints/safetensors.h"
#include "converters/checkpoints/saved_network.h"
#include "converters/checkpoints/shard_index.h"
#include "converters/checkpoints/tensor_bundle.h"
#include "converters/checkpoints/wrapped_names.h"
#include "format/digest.h"
#include "format/input_file.h"

namespace kinglet {
namespace {

// The output layer that OpenNMT-py saves next to its "model".
Status AddGenerator(const PickleNode& root, const std::string& path, StateDict& tensors) {
  const PickleNode* model = root.Find("model");
  const PickleNode* generator = root.Find("generator");
  if (model == nullptr || generator == nullptr || generator->As<PickleDict>() == nullptr) return {};
  KINGLET_ASSIGN_OR_RETURN(const SavedNetwork more, FindNetwork(*generator, {}, path));
  for (const NamedTensor& named : more.tensors) {
    tensors.push_back({"generator." + named.name, named.tensor});
  }
  return {};
}

// Bounds the memory that views of one storage in a small file can ask for.
Status CheckTotalEntries(const StateDict& tensors, const InputFile& file) {
  const uint64_t limit = 2 * file.size() + kMaxRepeated;
  uint64_t total = 0;
  for (const NamedTensor& named : tensors) {
    const uint64_t entries = CountEntries(named.tensor->shape);
    if (entries > limit - total) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", file.path(),
          "at most " + std::to_string(limit) + " entries in all tensors of a file of its size",
          "more, up to tensor " + QuotedName(named.name) +
              " (in PyTorch, save tensor.contiguous() of views)");
    }
    total += entries;
  }
  return {};
}

// A text that is equal for tensors of equal shape that read the same elements.
std::string PlaceOf(const InputFile& file, const PickleTensor& tensor) {
  // An array in the pickle is a place of its own.
  if (tensor.bytes != nullptr) return "";
  std::string place = file.path() + " " + tensor.storage_key + " " + std::to_string(tensor.offset);
  for (const uint64_t stride : tensor.strides) place += " " + std::to_string(stride);
  if (tensor.negated) place += " negated";
  return place;
}

CheckpointTensor TorchTensor(const NamedTensor& named,
                             const std::shared_ptr<const Checkpoint>& file) {
  const PickleTensor& tensor = *named.tensor;  // the checkpoint's
  CheckpointTensor opened;
  opened.name = named.name;
  opened.shape = tensor.shape;
  opened.values = [file, &tensor] { return file->ReadFloats(tensor); };
  opened.integers = [file, &tensor] { return file->ReadIntegers(tensor); };
  opened.place = PlaceOf(file->file(), tensor);
  opened.type = tensor.type;
  if (!tensor.shape.empty()) {
    opened.rows = [file, &tensor](uint64_t first, uint64_t count) {
      const StridedView view = RowsOf({tensor.offset, tensor.shape, tensor.strides}, first, count);
      PickleTensor part = tensor;
      part.offset = view.offset;
      part.shape = view.shape;
      return file->ReadFloats(part);
    };
  }
  return opened;
}

// "'epoch' (int), 'vocab' (list), ...".
std::string ListSome(const std::vector<std::string>& items) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, items.size()); ++i) {
    text += (i == 0 ? "" : ", ") + items[i];
  }
  return items.size() > kShown ? text + ", ..." : text;
}

Status ReadTorchFile(const std::shared_ptr<const InputFile>& file, const NetworkPlace& place,
                     CheckpointFile& result) {
  KINGLET_ASSIGN_OR_RETURN(result.checkpoint, Checkpoint::Open(file));
  const PickleNode& root = result.checkpoint->root();
  KINGLET_ASSIGN_OR_RETURN(SavedNetwork network, FindNetwork(root, place.keys, file->path()));
  result.modules = network.modules;
  KINGLET_RETURN_IF_ERROR(AddGenerator(root, file->path(), network.tensors));
  KINGLET_RETURN_IF_ERROR(CheckTotalEntries(network.tensors, *file));
  for (const NamedTensor& named : network.tensors) {
    result.tensors.push_back(TorchTensor(named, result.checkpoint));
  }
  result.unread = network.unread;
  result.unread_names = network.unread_names;
  if (!network.others.empty()) {
    result.notes.push_back("entries of the state dict that are not tensors are not read: " +
                           ListSome(network.others));
  }
  const PickleNode* step = network.path.empty() ? nullptr : root.Find("step");
  if (step != nullptr && step->Integer()) result.step = step->Integer();
  return {};
}

struct ContainerReader {
  bool (*recognises)(const InputFile& file);
  Result<CheckpointTensors> (*open)(const std::shared_ptr<const InputFile>& file);
};
// Containers that hold tensors only. Any zip archive that is not an .npz is tried as torch.save's.
constexpr std::array<ContainerReader, 4> kContainers = {{{LooksLikeNpz, NpzTensors},
                                                         {LooksLikeNpy, NpyTensors},
                                                         {LooksLikeSafetensors, SafetensorsTensors},
                                                         {LooksLikeCodes, CodesTensors}}};

Status ReadContainer(const std::shared_ptr<const InputFile>& file, const NetworkPlace& place,
                     CheckpointFile& result) {
  for (const ContainerReader& container : kContainers) {
    if (!container.recognises(*file)) continue;
    if (!place.keys.empty()) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", file->path(),
                             "a file of torch.save, as the recipe names a \"state_dict\"",
                             "another format (omit \"state_dict\" from the recipe)");
    }
    Result<CheckpointTensors> tensors = container.open(file);
    // An error of reading names the file already.
    if (tensors.status().code() == KINGLET_IO_ERROR) return tensors.status();
    if (!tensors.ok()) return InFile(file->path(), tensors.status());
    result.tensors = std::move(tensors).value();
    return {};
  }
  if (Checkpoint::Recognises(*file)) return ReadTorchFile(file, place, result);
  if (LooksLikePickle(*file)) {
    const Status read = ReadTorchFile(file, place, result);
    if (read.ok() ? !result.tensors.empty() : read.code() != KINGLET_INVALID_CHECKPOINT) {
      return read;
    }
  }
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, file->path(), "byte 0",
                         "a file of torch.save, safetensors, numpy (.npz, .npy), a TensorFlow "
                         "checkpoint's .index or a text of codes",
                         DescribeForeign(*file));
}

Result<CheckpointFile> OpenOneFile(InputFile opened, const NetworkPlace& place) {
  const auto file = std::make_shared<const InputFile>(std::move(opened));
  CheckpointFile result;
  result.path = file->path();
  result.bytes = file->size();
  result.step = StepOf(result.path);
  KINGLET_RETURN_IF_ERROR(ReadContainer(file, place, result));
  KINGLET_ASSIGN_OR_RETURN(result.digest, DigestOf(*file));
  return result;
}

Result<CheckpointFile> OpenBundle(InputFile index) {
  CheckpointFile result;
  result.path = index.path();
  result.step = StepOf(result.path);
  KINGLET_ASSIGN_OR_RETURN(TensorBundle bundle,
                           OpenTensorBundle(std::make_shared<const InputFile>(std::move(index))));
  result.tensors = std::move(bundle.tensors);
  std::string digests;
  for (const auto& file : bundle.files) {
    result.bytes += file->size();
    KINGLET_ASSIGN_OR_RETURN(const std::string digest, DigestOf(*file));
    digests += digest;
  }
  result.digest = HexText(DigestOf(std::as_bytes(std::span<const char>(digests))));
  return result;
}

Result<CheckpointFile> OpenShards(const InputFile& opened, const NetworkPlace& place) {
  KINGLET_ASSIGN_OR_RETURN(ShardIndex index, ReadShardIndex(opened));
  CheckpointFile result;
  result.path = opened.path();
  const std::string folder = std::filesystem::path(result.path).parent_path().string();
  std::string digests;
  for (const std::string& name : index.files) {
    const std::optional<std::string> path = FileInFolder(folder, name);
    if (!path) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, result.path, "file " + QuotedName(name),
                             "a file in the index's folder",
                             "a link to another folder (copy the file)");
    }
    KINGLET_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(*path));
    KINGLET_ASSIGN_OR_RETURN(CheckpointFile shard, OpenOneFile(std::move(file), place));
    for (CheckpointTensor& tensor : shard.tensors) {
      const auto at = index.file_of.find(tensor.name);
      if (at == index.file_of.end() || at->second != name) {
        return Status::Refusal(KINGLET_INVALID_CHECKPOINT, result.path, shard.path,
                               "only tensors that the index lists for this file",
                               QuotedName(tensor.name));
      }
      index.file_of.erase(at);
      result.tensors.push_back(std::move(tensor));
    }
    result.bytes += shard.bytes;
    result.notes.insert(result.notes.end(), shard.notes.begin(), shard.notes.end());
    digests += shard.digest;
  }
  if (!index.file_of.empty()) {
    const auto& [tensor, name] = *index.file_of.begin();
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, result.path, "tensor " + QuotedName(tensor),
                           "a tensor of " + QuotedName(name) + ", as the index lists it",
                           "none (copy or download the files again)");
  }
  result.digest = HexText(DigestOf(std::as_bytes(std::span<const char>(digests))));
  return result;
}

// The module inside DataParallel, AveragedModel or torch.compile; nullptr for other modules.
NodeRef WrappedModule(const PickleNode& module) {
  for (const std::string_view name : {"module", "_orig_mod"}) {
    const NodeRef inner = Submodule(module, name);
    if (inner != nullptr && IsModule(*inner)) return inner;
  }
  return nullptr;
}

// Gives the tensors the names of the network's own code.
Status CleanNames(const NetworkPlace& place, CheckpointFile& result) {
  const std::vector<std::string> taken = UnwrapNames(result.tensors);
  if (!taken.empty()) {
    result.notes.push_back("removed from the tensors' names: " + ListSome(taken));
  }
  // The network is the module inside the wrappers.
  while (result.modules.network != nullptr && !taken.empty()) {
    const NodeRef inner = WrappedModule(*result.modules.network);
    if (inner == nullptr) break;
    result.modules.network = inner;
  }
  if (place.prefix.empty()) return {};
  return KeepPrefix(place.prefix, result.path, result.tensors);
}

}  // namespace

Result<CheckpointFile> OpenCheckpointFile(const std::string& path, const NetworkPlace& place) try {
  Result<InputFile> named = InputFile::Open(path);
  if (named.status().code() == KINGLET_NOT_FOUND) {
    // A TensorFlow checkpoint's prefix is not the name of a file.
    Result<InputFile> index = InputFile::Open(path + ".index");
    if (index.ok() && LooksLikeTensorBundle(*index)) named = std::move(index);
  }
  if (!named.ok()) return named.status();
  InputFile opened = std::move(named).value();
  const bool bundle = LooksLikeTensorBundle(opened), index = LooksLikeShardIndex(opened);
  const bool numpy = LooksLikeNpz(opened) || LooksLikeNpy(opened);
  const std::string saver = bundle                         ? "tf.compat.v1.train.Saver"
                            : index                        ? "save_pretrained"
                            : LooksLikeSafetensors(opened) ? "safetensors.torch.save_file"
                            : numpy                        ? "numpy.savez"
                                                           : "torch.save";
  KINGLET_ASSIGN_OR_RETURN(
      CheckpointFile result,
      WithNextStep(bundle  ? OpenBundle(std::move(opened))
                   : index ? OpenShards(opened, place)
                           : OpenOneFile(std::move(opened), place),
                   "copy or download it again, or save it again with " + saver));
  KINGLET_RETURN_IF_ERROR(CleanNames(place, result));
  return result;
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "opening", "memory for its names", "none");
}

}  // namespace kinglet
