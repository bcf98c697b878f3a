// The index of a checkpoint whose tensors lie in several files: what Hugging Face's library writes
// beside them ("pytorch_model.bin.index.json", "model.safetensors.index.json"), a JSON object whose
// "weight_map" says of every tensor in which file it lies.
#ifndef KINGLET_CONVERTERS_SOURCES_SHARD_INDEX_H_
#define KINGLET_CONVERTERS_SOURCES_SHARD_INDEX_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "converters/sources/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

struct ShardIndex {
  std::vector<std::string> files;  // names without folders, each once, in the order of their names
  std::unordered_map<std::string, std::string> file_of;  // by tensor
};

// Whether the file's name is that of an index and it starts with a brace.
bool LooksLikeShardIndex(const InputFile& file);

// Refuses indices over 100 MB and files that do not lie beside the index. Errors:
// KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
Result<ShardIndex> ReadShardIndex(const InputFile& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_SHARD_INDEX_H_
