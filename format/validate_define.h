// The rules of format/blocks.h for DeFINE units that stay in the file.
#ifndef KINGLET_FORMAT_VALIDATE_DEFINE_H_
#define KINGLET_FORMAT_VALIDATE_DEFINE_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks the embedding's units, whose outputs have its width, their tensors, their caches and which
// bins they have, but not the bins. Errors: KINGLET_INVALID_MODEL naming the block that `checks`
// has entered.
Status ValidateUnits(const BlockChecks& checks, const AdaptiveEmbedding& embedding);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_DEFINE_H_
