// The family `transformer-xl`: PyTorch checkpoints of kimiyoung/transformer-xl, the model pickled
// whole (model.pt), with its peculiarities:
//   - how the network runs is in attributes of the pickled objects; a --config file may replace
//     mem_len, clamp_len and same_length, as the training code's eval.py does, or say all of them
//     where only a state dict was saved
//   - memory starts empty
//   - rows of cluster_weight are in reverse order of the bins
#ifndef KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_H_
#define KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kTransformerXlFamily = "transformer-xl";

bool LooksLikeTransformerXl(std::span<const SourceTensor> weights);

// Errors: as LoadTransformerXlNetwork, CheckTransformerXlKind and ConfigFile;
// KINGLET_INVALID_CHECKPOINT naming an attribute that neither module nor configuration has.
Result<LoadedModel> LoadTransformerXl(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_H_
