// The family `opennmt`: Transformers for translation (Vaswani et al. 2017, "Attention Is All You
// Need") with the norm first, stored tables of positions and a full softmax; and recurrent models
// (opennmt_recurrent.h).
// Framework: OpenNMT-py 1.0. Files: <name>_step_<n>.pt, with `model` and `generator` (tensors),
// `opt` (hyper-parameters) and `vocab` (the words of both languages).
// Peculiarities:
//   - norms may have their old names, a_2 and b_2
//   - tables with equal values are stored once
//   - an embedding may be a DeFINE unit (Mehta et al. 2020) in place of the table emb_luts.0, with
//     the names of claimed_define.h inside that module; its outputs for all words become the table,
//     unless the user keeps the unit
#ifndef KINGLET_CONVERTERS_FAMILIES_OPENNMT_H_
#define KINGLET_CONVERTERS_FAMILIES_OPENNMT_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"

namespace kinglet {

inline constexpr std::string_view kOpenNmtFamily = "opennmt";

bool LooksLikeOpenNmt(std::span<const CheckpointTensor> weights);

// With FamilyInput::memory_length, sources and targets have one position more than that, instead of
// the checkpoint's number; each position takes memory in every session. Errors:
// KINGLET_INVALID_CHECKPOINT, also for options that the blocks cannot express (relative positions,
// average attention, copying, word features), by the option's name.
Result<LoadedModel> LoadOpenNmt(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_OPENNMT_H_
