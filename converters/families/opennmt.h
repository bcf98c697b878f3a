// OpenNMT-py's Transformer for translation, as version 1.0.0 saves it: an encoder and a decoder of
// layers with the norm first (Vaswani et al. 2017), stored tables of positions, a full softmax.
#ifndef KINGLET_CONVERTERS_FAMILIES_OPENNMT_H_
#define KINGLET_CONVERTERS_FAMILIES_OPENNMT_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"

namespace kinglet {

inline constexpr std::string_view kOpenNmtFamily = "opennmt";

bool LooksLikeOpenNmt(std::span<const SourceTensor> weights);

// The checkpoint says all: `model` and `generator` are the tensors, `opt` the hyper-parameters,
// `vocab` the words of both languages. Norms may have their old names, a_2 and b_2. Tables with
// equal values are stored once. An embedding may be a DeFINE input (Mehta et al. 2020) in place of
// the table emb_luts.0, with the names of define_source.h behind that module's: it is converted as
// the table that it amounts to. FamilyInput::memory_length keeps so many positions and one more, of
// sources and of targets, which take memory in every session. Refuses, with the option's name, what
// the blocks cannot say: relative positions, average attention, copying, word features. Errors:
// KINGLET_INVALID_CHECKPOINT.
Result<LoadedModel> LoadOpenNmt(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_OPENNMT_H_
