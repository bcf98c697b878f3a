// The family `transfo-xl-hf`: Hugging Face's TransfoXL, a folder of config.json and weights
// (pytorch_model.bin, model.safetensors, or several files with an index), with its peculiarities:
//   - what is tied may be left out of the weights; config.json says what is
//   - memory starts as zeros that attention sees
//   - rows of cluster_weight are in the order of the bins
#ifndef KINGLET_CONVERTERS_FAMILIES_TRANSFO_XL_HF_H_
#define KINGLET_CONVERTERS_FAMILIES_TRANSFO_XL_HF_H_

#include <span>
#include <string_view>

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kTransfoXlFamily = "transfo-xl-hf";

bool LooksLikeTransfoXl(std::span<const SourceTensor> weights);

// With the given configuration, or config.json beside the checkpoint. Errors: as
// LoadTransformerXlNetwork, CheckTransformerXlKind and ConfigFile; KINGLET_NOT_FOUND without a
// configuration.
Result<LoadedModel> LoadTransfoXl(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRANSFO_XL_HF_H_
