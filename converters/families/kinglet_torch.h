// The family `kinglet-torch`: checkpoints of examples/torch, which say in a configuration of their
// own what they are made of. examples/torch/README.md specifies configuration and tensors.
#ifndef KINGLET_CONVERTERS_FAMILIES_KINGLET_TORCH_H_
#define KINGLET_CONVERTERS_FAMILIES_KINGLET_TORCH_H_

#include <span>
#include <string>
#include <string_view>

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr std::string_view kKingletTorchFamily = "kinglet-torch";

bool LooksLikeKingletTorch(std::span<const SourceTensor> weights);

// The recipe (docs/RECIPES.md), as JSON, that the configuration stands for. Errors:
// KINGLET_INVALID_CHECKPOINT naming the key.
Result<std::string> KingletTorchRecipe(const PickleNode& config);

Result<LoadedModel> LoadKingletTorch(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_KINGLET_TORCH_H_
