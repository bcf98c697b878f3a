// The error of a checkpoint whose tensors, settings or tables are not what a family expects.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_REFUSE_CHECKPOINT_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_REFUSE_CHECKPOINT_H_

#include <string>
#include <utility>

#include "kinglet/status.h"

namespace kinglet {

// The next step for a file with missing or wrong bytes, for the end of a message.
inline constexpr const char* kCopyAgain =
    " (the file is truncated or damaged: copy or download it again)";

// The refusal of what a file contains, ending with a next step if it has none yet. Other errors are
// left alone.
inline Status WithNextStep(const Status& status, const std::string& step) {
  const bool of_contents = status.code() == KINGLET_INVALID_CHECKPOINT ||
                           status.code() == KINGLET_INVALID_ARGUMENT ||
                           status.code() == KINGLET_UNSUPPORTED;
  if (!of_contents || status.message().ends_with(')')) return status;
  return Status(status.code(), status.message() + " (" + step + ")");
}
template <class Value>
Result<Value> WithNextStep(Result<Value> result, const std::string& step) {
  return result.ok() ? std::move(result) : WithNextStep(result.status(), step);
}

// "checkpoint: WHERE: expected EXPECTED, found FOUND" as KINGLET_INVALID_CHECKPOINT.
inline Status RefuseCheckpoint(const std::string& where, const std::string& expected,
                               const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", where, expected, found);
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_REFUSE_CHECKPOINT_H_
