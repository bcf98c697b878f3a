// A family's checkpoint in which a recipe declares tables that the family does not know how to
// make.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_

#include <cstddef>

#include "converters/recipe/recipe.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

// The tensors as the family sees them: the recipe's tables by their names, in place of the tensors
// that they are made of. Errors: KINGLET_INVALID_CHECKPOINT naming the tensor, also for a table
// that the checkpoint has already; as MakeTable. REQUIRES: threads >= 1.
Result<SourceWeights> WithTables(const Recipe& recipe, const SourceWeights& weights,
                                 size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_
