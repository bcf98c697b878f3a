// A recipe's DeFINE unit (Mehta et al. 2020): the JSON of its layers, which are group linear
// transformations (GLT), and their values.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_UNIT_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_UNIT_H_

#include <cstdint>
#include <vector>

#include "converters/network/network.h"
#include "converters/passes/define/define_weights.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_node.h"
#include "kinglet/status.h"

namespace kinglet {

// The options of a layer; its tensors, and the widths that follow from them, are not set. Errors:
// KINGLET_INVALID_ARGUMENT naming the location in the JSON.
Result<DefineRecipe::Layer> ParseUnitLayer(const RecipeNode& node);

struct RecipeUnit {
  DefineUnit unit;
  std::vector<DefineWeights> weights;  // one for each layer
};
// The unit on top of a Map layer of `map_width` features. Widths and the kind of bias follow from
// the tensors. Errors: KINGLET_INVALID_CHECKPOINT naming the tensor; those of CheckUnit and
// CheckWeights.
Result<RecipeUnit> ReadUnit(const DefineRecipe& recipe, uint64_t map_width, const Network& network);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_UNIT_H_
