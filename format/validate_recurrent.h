// The rules of format/blocks.h for recurrent decoders, their attention, and recurrent encoders.
#ifndef KINGLET_FORMAT_VALIDATE_RECURRENT_H_
#define KINGLET_FORMAT_VALIDATE_RECURRENT_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks all rules but those about the widths of embedding and softmax, and about models with an
// encoder. Errors, here and below: KINGLET_INVALID_MODEL naming the block that `checks` has
// entered.
Status ValidateDecoder(const BlockChecks& checks, const RecurrentDecoder& decoder);

// Checks attention and input feeding. `encoder` is nullptr for a model without an encoder.
// REQUIRES: the decoder passes ValidateDecoder.
Status ValidateGlobalAttention(const BlockChecks& checks, const RecurrentDecoder& decoder,
                               const RecurrentEncoder* encoder);

// Checks all rules but those of the embedding's own parts. The decoder may be invalid.
Status ValidateEncoder(const BlockChecks& checks, const RecurrentEncoder& encoder,
                       const RecurrentDecoder& decoder);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_RECURRENT_H_
