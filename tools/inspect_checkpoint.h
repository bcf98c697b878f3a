// The report of `kinglet inspect` about a checkpoint: its tensors, and which families read it.
#ifndef KINGLET_TOOLS_INSPECT_CHECKPOINT_H_
#define KINGLET_TOOLS_INSPECT_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

enum class CheckpointView : uint8_t { kText, kJson, kRecipeSkeleton };

// Whether the path is to be read as a checkpoint: a folder, or a file that neither is called *.kgl
// nor begins as a model file does.
bool IsCheckpointPath(const std::string& path);

// The report. Errors: those of FindCheckpoint and OpenCheckpointFile.
Result<std::string> ReportCheckpoint(const std::string& path, CheckpointView view);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_INSPECT_CHECKPOINT_H_
