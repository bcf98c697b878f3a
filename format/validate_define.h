// The rules of format/blocks.h for DeFINE units that stay in the file.
#ifndef KINGLET_FORMAT_VALIDATE_DEFINE_H_
#define KINGLET_FORMAT_VALIDATE_DEFINE_H_

#include <cstddef>
#include <string>

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks the embedding's units, whose outputs have its width, their tensors, their caches and which
// bins they have, but not the bins. Errors: KINGLET_INVALID_MODEL naming the block that `checks`
// has entered.
Status ValidateUnits(const BlockChecks& checks, const AdaptiveEmbedding& embedding);
// Checks the spelling of a bin, its tensors, and that only the last bin has one. `part` names the
// bin. REQUIRES: the bin has a spelling; ValidateUnits.
Status ValidateSpelling(const BlockChecks& checks, const AdaptiveEmbedding& embedding, size_t index,
                        const std::string& part);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_DEFINE_H_
