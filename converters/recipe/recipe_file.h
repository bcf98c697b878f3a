// Which recipe describes a checkpoint: the one that the user names, or the one next to the weights.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_FILE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_FILE_H_

#include <string>

#include "converters/recipe/recipe.h"
#include "kinglet/status.h"

namespace kinglet {

// "models/small.recipe.json" for "models/small.pt": where a framework that can describe its own
// networks (examples/torch) saves the recipe of the weights.
std::string RecipePathNextTo(const std::string& checkpoint);

// The recipe that converts `checkpoint`:
// - `path`, if that recipe names blocks or a family;
// - the file at RecipePathNextTo, if there is one. A recipe `path` without blocks replaces its
//   passes, and states where the checkpoint stores the network;
// - otherwise `path` as it is, or, where `path` is empty, an empty recipe: a family has to
//   recognise the checkpoint.
// `trusted`: names in the recipe `path` may leave its folder and the checkpoint's; names in the
// recipe next to the weights never may. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR;
// KINGLET_INVALID_ARGUMENT naming the location in the JSON.
Result<Recipe> ChooseRecipe(const std::string& checkpoint, const std::string& path,
                            bool trusted = false);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_FILE_H_
