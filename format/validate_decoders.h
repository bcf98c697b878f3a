// The rules of format/blocks.h for Transformer decoders.
#ifndef KINGLET_FORMAT_VALIDATE_DECODERS_H_
#define KINGLET_FORMAT_VALIDATE_DECODERS_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks all rules but those about the widths of embedding and softmax and about cross-attention.
// Errors: KINGLET_INVALID_MODEL naming the block that `checks` has entered.
Status ValidateDecoder(const BlockChecks& checks, const TransformerDecoder& decoder);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_DECODERS_H_
