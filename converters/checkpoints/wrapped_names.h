// Names of tensors as the network's own code gives them. Wrappers of the training put text before
// or into them, which no family has to know.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_WRAPPED_NAMES_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_WRAPPED_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "kinglet/status.h"

namespace kinglet {

// Takes wrappers out of the names:
// - "module." before all names: DataParallel, DistributedDataParallel, AveragedModel, whose count
//   "n_averaged" goes too;
// - "_orig_mod." (torch.compile), "_fsdp_wrapped_module." and "_checkpoint_wrapped_module."
//   anywhere.
// Names of a criterion or generator beside the network ("criterion.", "generator.") need no
// "module.". Returns what was taken out, for the user: "'module.'". Names that would no longer
// differ stay as they are.
std::vector<std::string> UnwrapNames(CheckpointTensors& tensors);

// Keeps the tensors whose names begin with `prefix`, and takes it off. Errors:
// KINGLET_INVALID_CHECKPOINT if there are none, naming `file`.
Status KeepPrefix(std::string_view prefix, const std::string& file, CheckpointTensors& tensors);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_WRAPPED_NAMES_H_
