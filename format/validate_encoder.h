// The rules of format/blocks.h for encoders and for cross-attention in decoders.
#ifndef KINGLET_FORMAT_VALIDATE_ENCODER_H_
#define KINGLET_FORMAT_VALIDATE_ENCODER_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// All rules but those about the embedding. Errors, here and below: KINGLET_INVALID_MODEL naming the
// block that `checks` has entered.
Status ValidateEncoder(const BlockChecks& checks, const TransformerEncoder& encoder);

// Every layer of the decoder has cross-attention to `encoder`; null: none has. REQUIRES: the
// decoder passes ValidateDecoder.
Status ValidateCrossAttention(const BlockChecks& checks, const TransformerDecoder& decoder,
                              const TransformerEncoder* encoder);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_ENCODER_H_
