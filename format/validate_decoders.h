// The rules of format/blocks.h for decoders.
#ifndef KINGLET_FORMAT_VALIDATE_DECODERS_H_
#define KINGLET_FORMAT_VALIDATE_DECODERS_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Everything but how the widths fit the embedding and the softmax. Errors: KINGLET_INVALID_MODEL
// naming the block that `checks` is in.
Status ValidateDecoder(const BlockChecks& checks, const TransformerDecoder& decoder);
Status ValidateDecoder(const BlockChecks& checks, const RecurrentDecoder& decoder);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_DECODERS_H_
