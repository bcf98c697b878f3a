// The family `transfo-xl-hf`: Transformer-XL (Dai et al. 2019) as Hugging Face's TransfoXL. Files:
// a folder of config.json and weights (pytorch_model.bin, model.safetensors, or several files with
// an index). Peculiarities:
//   - tied tensors may be missing from the weights; config.json tells which tensors are tied
//   - the memory starts as zeros, which attention sees
//   - rows of cluster_weight are in the order of the bins
#ifndef KINGLET_CONVERTERS_FAMILIES_TRANSFO_XL_HF_H_
#define KINGLET_CONVERTERS_FAMILIES_TRANSFO_XL_HF_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kTransfoXlFamily = "transfo-xl-hf";

bool LooksLikeTransfoXl(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> TransfoXlOptions();

// The configuration is the given file, or config.json next to the checkpoint. Errors: those of
// LoadTransformerXlNetwork, CheckOptions and ConfigFile; KINGLET_NOT_FOUND without a configuration.
Result<LoadedModel> LoadTransfoXl(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRANSFO_XL_HF_H_
