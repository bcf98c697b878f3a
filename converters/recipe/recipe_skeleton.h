// An incomplete recipe for a checkpoint that no family reads as it is.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_SKELETON_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_SKELETON_H_

#include <string>

#include "converters/families/families.h"

namespace kinglet {

// JSON for a person to complete. What follows from names and shapes is filled in: the nearest
// family, torch modules of recurrent layers, tables of words, DPQ's tensors. All else is "?", which
// `convert` refuses. The tensors that no key names are listed in "comment".
std::string RecipeSkeleton(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_SKELETON_H_
