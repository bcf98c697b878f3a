// The rules of format/blocks.h for DeFINE units that stay in the file.
#ifndef KINGLET_FORMAT_VALIDATE_DEFINE_H_
#define KINGLET_FORMAT_VALIDATE_DEFINE_H_

#include <cstdint>

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// A unit whose output has `width` features, its tensors and its cache; not its Map, the bins.
// Errors: KINGLET_INVALID_MODEL naming the block that `checks` is in.
Status ValidateDefine(const BlockChecks& checks, const KeptDefineUnit& kept, uint64_t width);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_DEFINE_H_
