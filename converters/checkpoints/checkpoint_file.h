// A file of named tensors that a framework wrote, in any container that the converters read:
// torch.save (zip and legacy format), safetensors, NumPy's .npz and .npy, TensorFlow's checkpoints,
// and code tables as text, recognised by content; or several such files with an index. No code in a
// file is executed.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_FILE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint.h"
#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/saved_module.h"
#include "kinglet/status.h"

namespace kinglet {

struct CheckpointFile {
  std::string path;
  // XXH3-128 of the file, in hexadecimal. With an index: of the concatenated digests of its files.
  std::string digest;
  uint64_t bytes = 0;         // size of the file; with an index, of all its files
  CheckpointTensors tensors;  // they keep the file open and read values on demand
  // The pickled modules of a torch.save file; nullptrs for other containers. The modules live as
  // long as `checkpoint`.
  SavedModules modules;
  std::optional<int64_t> step;                   // of training, if the file or its name states it
  std::shared_ptr<const Checkpoint> checkpoint;  // of a torch.save file; otherwise nullptr
  std::vector<std::string> notes;                // what was omitted or renamed, for the user
  // Why a tensor may be missing (SavedNetwork::unread), for the end of a refusal.
  std::string unread;
  std::vector<std::string> unread_names;
};

// Where a file stores its network, if the recipe states it.
struct NetworkPlace {
  std::vector<std::string> keys;  // of the dicts around the state dict, outermost first
  std::string prefix;             // of the network's names; tensors of other names are omitted
};

// Opens the file at `path`.
//
// saved_network.h lists the forms in which torch.save stores a network. A "generator" next to
// "model" is OpenNMT-py's output layer; its names get the prefix "generator.". Tensors may share
// storages, as tied tables do, and repeat elements, but all tensors together may not have more
// entries than twice the bytes of the file and kMaxRepeated. Wrappers are removed from the names
// (wrapped_names.h).
//
// A TensorFlow checkpoint (tensor_bundle.h) is named by its .index, or by its prefix, as TensorFlow
// does.
//
// An index (shard_index.h) gives the tensors of all its files; each must be in the file that the
// index names. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_INVALID_CHECKPOINT,
// KINGLET_OUT_OF_MEMORY.
Result<CheckpointFile> OpenCheckpointFile(const std::string& path, const NetworkPlace& place = {});

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_FILE_H_
