// The rules of format/blocks.h for masked models.
#ifndef KINGLET_FORMAT_VALIDATE_MASKED_H_
#define KINGLET_FORMAT_VALIDATE_MASKED_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks all rules but those of the segments' embedding. Errors: KINGLET_INVALID_MODEL naming the
// block that `checks` has entered.
Status ValidateMasked(const BlockChecks& checks, const MaskedModel& model);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_MASKED_H_
