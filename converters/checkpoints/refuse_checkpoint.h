// The error of a checkpoint whose tensors, settings or tables are not what a family expects.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_REFUSE_CHECKPOINT_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_REFUSE_CHECKPOINT_H_

#include <string>

#include "kinglet/status.h"

namespace kinglet {

// The next step for a file with missing or wrong bytes, for the end of a message.
inline constexpr const char* kCopyAgain =
    " (the file is truncated or damaged: copy or download it again)";

// "checkpoint: WHERE: expected EXPECTED, found FOUND" as KINGLET_INVALID_CHECKPOINT.
inline Status RefuseCheckpoint(const std::string& where, const std::string& expected,
                               const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", where, expected, found);
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_REFUSE_CHECKPOINT_H_
