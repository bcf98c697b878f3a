// The family `fairseq`: Transformer language models (Baevski & Auli 2019, "Adaptive Input
// Representations for Neural Language Modeling").
// Framework: facebookresearch/fairseq, transformer_lm. Files: model.pt.
// Peculiarities:
//   - every text begins with </s>, word 2, so its first token is predicted too
//   - band 0 of the adaptive embedding has a projection, which the softmax does not use
//   - positions count from 2, one above the id of the padding word; they are sinusoids, and the
//     frequencies' exponents are divided by one less than half the width
//   - the input may be a character CNN, whose table is computed from the dictionary's spellings
//   - older files store queries, keys and values in one tensor and number the norms
//   - norms come first, with one at the end, or last without it
#ifndef KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_H_
#define KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_H_

#include <span>
#include <string_view>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/fairseq_characters.h"
#include "converters/families/fairseq_config.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

// Blocks and float32 tensors. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused and mis-shaped
// tensors (all in one message), for tied tensors with different values and for a dictionary that
// does not fit. `dictionary` is for config.characters.
Result<LoadedModel> FairseqDraft(const FairseqConfig& config,
                                 std::span<const CheckpointTensor> weights,
                                 const FairseqDictionary& dictionary = {},
                                 NameReport* report = nullptr);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_H_
