// Replaces a table of a model by its low-rank factors.
#ifndef KINGLET_CONVERTERS_RECIPE_PROJECT_TABLE_H_
#define KINGLET_CONVERTERS_RECIPE_PROJECT_TABLE_H_

#include <string>

#include "converters/families/families.h"
#include "converters/passes/low_rank.h"
#include "converters/passes/reconstruction.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Replaces tensor `id` by the narrow table of `factors` in every block that reads it as a table:
// the embedding, tails, and a softmax without tails. The second factor is multiplied into the
// projection that the table has; otherwise the table gets a projection, called NAME.projection, or
// NAME.projection_in in a softmax. `found` gets the bytes of both tensors if there were two.
// Errors: KINGLET_INVALID_ARGUMENT, "recipe: WHERE, TENSOR: ..". REQUIRES: the tensor is float32,
// and the factors are its own.
Status ProjectTable(TensorId id, LowRank factors, const std::string& where, LoadedModel& model,
                    Reconstruction& found);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_PROJECT_TABLE_H_
