// Finds the files of a training run: the checkpoint in a folder, and the configuration next to it.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_PATH_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_PATH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

// The training step in a checkpoint's name: 3000 in "models/model-3000.pth" and
// "model-3000-processed.pth". Returns nullopt for other names.
std::optional<int64_t> StepOf(std::string_view path);

// `path` itself, unless it is a folder. In a folder (in its subfolder `models`, if it has one), the
// only file with a name that a framework gives its checkpoints: model-<step>.pth,
// <name>_step_<n>.pt, epoch-7.pt, valid.loss.ave_3best.pth, lm.ckpt, model.npz, .. Of model.pt and
// the forms in which Hugging Face transformers writes one model (pytorch_model.bin,
// model.safetensors, or their index) only the first counts. Without such a file: the .index of a
// TensorFlow checkpoint (of several, the latest, which TensorFlow's file `checkpoint` names) or
// SavedModel, or else the only file that contains tensors. Links to the same file count once. Of
// another file of a TensorFlow checkpoint (`checkpoint`, .meta, .data-..), its .index. Errors:
// KINGLET_NOT_FOUND; KINGLET_INVALID_ARGUMENT naming the files if there are several;
// KINGLET_UNSUPPORTED for the files of torch.distributed.checkpoint; KINGLET_IO_ERROR.
Result<std::string> FindCheckpoint(const std::string& path);

// The file `name` in the checkpoint's folder, or else up to `levels` folders up. Errors:
// KINGLET_NOT_FOUND.
Result<std::string> FindConfig(const std::string& checkpoint, const std::string& name,
                               int levels = 1);

// The config.yaml in the checkpoint's folder, for families that do not need one. Empty if there is
// none.
std::string ConfigNextTo(const std::string& checkpoint);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_PATH_H_
