// The index of a sharded checkpoint, whose tensors are spread over several files. Hugging Face
// transformers writes it next to them as pytorch_model.bin.index.json or
// model.safetensors.index.json: a JSON object whose "weight_map" maps each tensor's name to its
// file.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_SHARD_INDEX_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_SHARD_INDEX_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

struct ShardIndex {
  std::vector<std::string> files;                        // names without folders, sorted, each once
  std::unordered_map<std::string, std::string> file_of;  // by tensor
};

// Whether the file is named *.index.json and starts with a brace.
bool LooksLikeShardIndex(const InputFile& file);

// Refuses an index over 100 MB, and one that names a file in another folder. Errors:
// KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
Result<ShardIndex> ReadShardIndex(const InputFile& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_SHARD_INDEX_H_
