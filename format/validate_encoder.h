// The rules of format/blocks.h for encoders and what a decoder has beside one.
#ifndef KINGLET_FORMAT_VALIDATE_ENCODER_H_
#define KINGLET_FORMAT_VALIDATE_ENCODER_H_

#include "format/block_checks.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Everything but the embedding. Errors, here and below: KINGLET_INVALID_MODEL naming the block that
// `checks` is in.
Status ValidateEncoder(const BlockChecks& checks, const TransformerEncoder& encoder);

// The cross-attention of a decoder's layers; encoder null: they have none. REQUIRES: the decoder is
// valid otherwise.
Status ValidateCrossAttention(const BlockChecks& checks, const TransformerDecoder& decoder,
                              const TransformerEncoder* encoder);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_ENCODER_H_
