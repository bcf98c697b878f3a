// Names of tensors as the network's own code gives them. Wrappers that training uses add text
// before or inside the names; removing it spares the families.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_WRAPPED_NAMES_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_WRAPPED_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "kinglet/status.h"

namespace kinglet {

// Removes wrappers from the names:
// - "module." before all names: DataParallel, DistributedDataParallel, AveragedModel, whose count
//   "n_averaged" is removed too;
// - "_orig_mod." (torch.compile), "_fsdp_wrapped_module." and "_checkpoint_wrapped_module."
//   anywhere.
// Names of a criterion or generator next to the network ("criterion.", "generator.") need no
// "module.". Returns the removed parts, for the user: "'module.'". Names that would no longer
// differ stay as they are.
std::vector<std::string> UnwrapNames(CheckpointTensors& tensors);

// Keeps the tensors whose names begin with `prefix`, and removes the prefix. Errors:
// KINGLET_INVALID_CHECKPOINT if there are none, naming `file`.
Status KeepPrefix(std::string_view prefix, const std::string& file, CheckpointTensors& tensors);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_WRAPPED_NAMES_H_
