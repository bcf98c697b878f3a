// A file of named tensors that a training code left, whatever its container: what torch.save wrote
// (legacy stream or zip archive), safetensors, numpy's .npz and .npy, and code tables as text,
// recognised by content; or several of them with an index. Nothing in a file is ever executed.
#ifndef KINGLET_CONVERTERS_SOURCES_SOURCE_FILE_H_
#define KINGLET_CONVERTERS_SOURCES_SOURCE_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "converters/sources/checkpoint.h"
#include "converters/sources/saved_module.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

struct SourceFile {
  std::string path;
  // XXH3-128 of the whole file, hexadecimal; of an index, of the digests of its files in a row.
  std::string digest;
  uint64_t bytes = 0;     // of the whole file; of an index, of its files
  SourceWeights tensors;  // read from the file, which they keep open, when their values are wanted
  // Of torch.save alone: the objects that were pickled whole. They live as long as `checkpoint`.
  SavedModules modules;
  std::optional<int64_t> step;  // of the training, where the file or its name tells it
  std::shared_ptr<const Checkpoint> checkpoint;  // null for other containers
};

// The file at `path`. What torch.save wrote must be a state dict, alone or as "net", "model" or
// "state_dict" of a dict, or a whole module, alone or first in a list; the second of a list is its
// criterion, whose names get "criterion." in front, and what follows (an optimiser) is not looked
// at. Tensors of a "generator" beside "model" (OpenNMT-py's output layer) get "generator." in
// front. Tensors may share storages (tied tables do), but all together may not have more entries
// than twice the bytes of the file. An index (converters/sources/shard_index.h) stands for the
// tensors of its files, each where the index has it. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
// KINGLET_INVALID_CHECKPOINT, KINGLET_OUT_OF_MEMORY.
Result<SourceFile> OpenSourceFile(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_SOURCE_FILE_H_
