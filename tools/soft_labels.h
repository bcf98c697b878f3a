// A text's most probable next tokens as numpy's arrays, for the training of another network: many
// streams at once, in files that are complete or not there.
#ifndef KINGLET_TOOLS_SOFT_LABELS_H_
#define KINGLET_TOOLS_SOFT_LABELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/console.h"

namespace kinglet {

struct SoftLabelOptions {
  std::string
      path;  // of the first file, such as SHARDS.npz; the next ones are SHARDS.00001.npz, ..
  std::string backend;
  uint32_t top = 0;
  uint64_t shard_tokens = 0;
  size_t lanes = 1, threads = 1;
};

struct SoftLabelTotals {
  uint64_t tokens = 0, shards = 0;
  uint64_t computed = 0;  // tokens that no earlier run had done
  uint64_t bytes = 0;     // of all files
  double seconds = 0;     // of the computed tokens
};

inline constexpr uint64_t kMostShardBytes = uint64_t{1} << 31;
// Bytes of one token in a file, without headers.
uint64_t SoftLabelBytes(uint32_t top, uint32_t vocabulary_size);

// The files of docs/COMMAND.md (predict --out). After each file the streams' states are kept next
// to it, in PATH.unfinished, from which the next run continues to the same bytes; the last file
// ends with its removal. A complete run's files are left as they are. Errors: those of sessions and
// of files; KINGLET_INVALID_ARGUMENT for the files of another run; KINGLET_CANCELLED after SIGINT.
Result<SoftLabelTotals> WriteSoftLabels(const SoftLabelOptions& options,
                                        const std::shared_ptr<const Model>& model,
                                        std::span<const uint32_t> ids, Progress& progress);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SOFT_LABELS_H_
