// The "transformer" of a recipe's JSON: a stack of attention and feed-forward layers.
#ifndef KINGLET_CONVERTERS_RECIPE_PARSE_TRANSFORMER_H_
#define KINGLET_CONVERTERS_RECIPE_PARSE_TRANSFORMER_H_

#include <string>
#include <vector>

#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_node.h"
#include "kinglet/status.h"

namespace kinglet {

// Appends the name of every tensor to `references`. Errors: KINGLET_INVALID_ARGUMENT naming the
// location in the JSON.
Result<TransformerRecipe> ParseTransformer(const RecipeNode& node,
                                           std::vector<std::string>& references);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_PARSE_TRANSFORMER_H_
