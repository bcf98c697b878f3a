// Language models of fairseq (facebookresearch/fairseq, transformer_lm; Baevski & Auli 2019,
// "Adaptive Input Representations for Neural Language Modeling"): tensor names -> blocks, with the
// network's peculiarities:
//   - every text begins with </s>, word 2, so that its first token is predicted too
//   - the embedding's band 0 has a projection, which the softmax does not use
//   - positions are sinusoids, counted from 2 (the index of the padding word, and one more); their
//     frequencies are divided by one less than half the width
//   - older files have queries, keys and values in one tensor, and numbered norms
#ifndef KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_H_
#define KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_H_

#include <span>
#include <string_view>

#include "converters/families/fairseq_config.h"
#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kFairseqFamily = "fairseq";

bool LooksLikeFairseq(std::span<const SourceTensor> weights);

// Blocks and float32 tensors. Missing, unused and mis-shaped tensors are refused all together in
// one line. Errors: KINGLET_INVALID_CHECKPOINT, also where tied tensors have different values;
// KINGLET_UNSUPPORTED for an adaptive softmax behind a projection of its own.
Result<LoadedModel> FairseqDraft(const FairseqConfig& config,
                                 std::span<const SourceTensor> weights);

// The same with the hyper-parameters of the checkpoint.
Result<LoadedModel> LoadFairseq(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_H_
