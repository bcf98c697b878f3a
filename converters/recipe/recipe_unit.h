// A recipe's DeFINE unit: what its JSON declares, and its values.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_UNIT_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_UNIT_H_

#include <cstdint>
#include <vector>

#include "converters/passes/define/define_weights.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_node.h"
#include "converters/recipe/recipe_tensors.h"
#include "kinglet/status.h"

namespace kinglet {

// The choices of a layer, without its tensors and what they tell.
Result<DefineRecipe::Layer> ParseUnitLayer(const RecipeNode& node);

struct RecipeUnit {
  DefineUnit unit;
  std::vector<DefineWeights> weights;  // of its layers
};
// The unit after a Map of `map_width` features; groups, widths and biases follow from the tensors.
// Errors: KINGLET_INVALID_CHECKPOINT naming the tensor; as CheckUnit and CheckWeights.
Result<RecipeUnit> ReadUnit(const DefineRecipe& recipe, uint64_t map_width,
                            const RecipeTensors& tensors);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_UNIT_H_
