// Whether a checkpoint has the tensors that a recipe names, and a recipe names those that it has.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_NAMES_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_NAMES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/recipe/recipe.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the recipe excludes a tensor of this name on purpose.
bool LeavesOut(const Recipe& recipe, std::string_view name);

// Refuses names that the weights lack, names that two weights have, and weights from index `extra`
// on that neither a name nor a pattern of `unused` covers, all in one message
// (KINGLET_INVALID_CHECKPOINT). `what`: "the recipe". Weights before `extra` are a family's.
Status CheckRecipeNames(const Recipe& recipe, std::span<const CheckpointTensor> weights,
                        size_t extra, const std::string& what);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_NAMES_H_
