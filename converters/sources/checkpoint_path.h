// Finds the files of a training run: the checkpoint in a folder, and the configuration beside it.
#ifndef KINGLET_CONVERTERS_SOURCES_CHECKPOINT_PATH_H_
#define KINGLET_CONVERTERS_SOURCES_CHECKPOINT_PATH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

// The training step in a checkpoint's name: 3000 in "models/model-3000.pth" and
// "model-3000-processed.pth". None in other names.
std::optional<int64_t> StepOf(std::string_view path);

// `path` itself, unless it is a folder. In a folder (in its subfolder `models`, if it has one), the
// first of these that is there: the model-<step>.pth or <name>_step_<n>.pt with the largest step,
// model.pt, and what Hugging Face transformers writes: pytorch_model.bin, model.safetensors, or
// their index; model.npz; the model-<step>.index of a TensorFlow checkpoint with the largest step.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR; KINGLET_INVALID_ARGUMENT for files
// <name>_step_<n>.pt of two names.
Result<std::string> FindCheckpoint(const std::string& path);

// The file `name` in the checkpoint's folder, or else one folder up. Errors: KINGLET_NOT_FOUND.
Result<std::string> FindConfig(const std::string& checkpoint, const std::string& name);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_CHECKPOINT_PATH_H_
