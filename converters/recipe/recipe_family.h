// Checkpoints of a family whose network has DeFINE units where the family expects tables. The
// recipe says what the units are made of.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_

#include <cstddef>

#include "converters/recipe/recipe.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

// The checkpoint's tensors as the family expects them: the recipe's tables, computed, in place of
// the tensors that they are made of. Errors: KINGLET_INVALID_CHECKPOINT naming the tensor, also if
// the checkpoint has a tensor of a table's name; those of MakeTable. REQUIRES: threads >= 1.
Result<SourceWeights> WithTables(const Recipe& recipe, const SourceWeights& weights,
                                 size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_FAMILY_H_
