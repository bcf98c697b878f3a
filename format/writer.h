// Values -> bytes: the only way a model file is made.
#ifndef KINGLET_FORMAT_WRITER_H_
#define KINGLET_FORMAT_WRITER_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "format/blocks.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Everything a model file says. Passes edit it; the writer packs it. Tensor ids in the blocks index
// `tensors`.
struct ModelDraft {
  ModelDescription description;
  std::vector<EncodedTensor> tensors;
  std::vector<std::string> vocabulary;         // index = id; empty: the model has ids only
  std::vector<std::string> source_vocabulary;  // of an encoder's source, likewise
};

// The file's bytes. Refuses values a file may not hold (a non-finite float or scale, a code out of
// its bits' range, counts that do not match the shape), naming the tensor and entry:
// KINGLET_INVALID_ARGUMENT.
Result<std::vector<std::byte>> SerialiseModel(const ModelDraft& draft);

// Writes `bytes` to `path` so that after a crash either the old file or the whole new one is there:
// a temporary file in the same folder, fsync, rename, fsync of the folder. On any error the
// temporary file is removed and `path` is untouched (but if only the last fsync fails, the new file
// is in place and may not survive a crash). A symbolic link stays and its target is replaced, with
// the target's permissions; a new file gets 0644 less the umask. Only a regular file is replaced.
// Errors: KINGLET_IO_ERROR naming the path and the system's reason.
Status WriteFileAtomically(std::span<const std::byte> bytes, const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_WRITER_H_
