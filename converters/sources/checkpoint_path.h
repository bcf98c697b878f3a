// Where a training code leaves its files: which checkpoint of a folder, which configuration beside
// it.
#ifndef KINGLET_CONVERTERS_SOURCES_CHECKPOINT_PATH_H_
#define KINGLET_CONVERTERS_SOURCES_CHECKPOINT_PATH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

// The step in the name of a checkpoint: 3000 for "models/model-3000.pth" and
// "model-3000-processed.pth".
std::optional<int64_t> StepOf(std::string_view path);

// `path` itself if it is a file. In a folder: the model-<step>.pth of the largest step, in its
// `models` folder or, without one, in the folder itself; then model.pt; then what Hugging Face's
// library writes: weights in one file or the index of several. Errors: KINGLET_NOT_FOUND,
// KINGLET_IO_ERROR.
Result<std::string> FindCheckpoint(const std::string& path);

// The file of this name beside the checkpoint, or else one folder up. Errors: KINGLET_NOT_FOUND.
Result<std::string> FindConfig(const std::string& checkpoint, const std::string& name);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_CHECKPOINT_PATH_H_
