// The rules of format/blocks.h for DeFINE units that stay in the file.
#ifndef KINGLET_FORMAT_VALIDATE_DEFINE_H_
#define KINGLET_FORMAT_VALIDATE_DEFINE_H_

#include <cstdint>

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks the unit, whose output must have `width` features, its tensors and its cache, but not its
// Map layer (the embedding's bins). Errors: KINGLET_INVALID_MODEL naming the block that `checks`
// has entered.
Status ValidateDefine(const BlockChecks& checks, const KeptDefineUnit& kept, uint64_t width);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_DEFINE_H_
