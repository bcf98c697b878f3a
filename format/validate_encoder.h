// The rules of format/blocks.h for encoders and for cross-attention in decoders.
#ifndef KINGLET_FORMAT_VALIDATE_ENCODER_H_
#define KINGLET_FORMAT_VALIDATE_ENCODER_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks all rules but the embedding's. Errors, here and below: KINGLET_INVALID_MODEL naming the
// block that `checks` has entered.
Status ValidateEncoder(const BlockChecks& checks, const TransformerEncoder& encoder);

// Checks that every layer of the decoder has cross-attention to `encoder`, or, if `encoder` is
// nullptr, that no layer has cross-attention. REQUIRES: the decoder passes ValidateDecoder.
Status ValidateCrossAttention(const BlockChecks& checks, const TransformerDecoder& decoder,
                              const TransformerEncoder* encoder);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_ENCODER_H_
