// A table of a model replaced by its low-rank factors.
#ifndef KINGLET_CONVERTERS_RECIPE_PROJECT_TABLE_H_
#define KINGLET_CONVERTERS_RECIPE_PROJECT_TABLE_H_

#include <string>

#include "converters/families/families.h"
#include "converters/passes/low_rank.h"
#include "converters/passes/reconstruction.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Tensor `id` becomes the thin table wherever it serves as a table: of the embedding, of tails, and
// of a softmax without tails. Where it had a projection, that takes the second factor in; else it
// gets one, "NAME.projection" or, of a softmax, "NAME.projection_in". `found` gets the bytes of
// both tensors where there were two. Errors: KINGLET_INVALID_ARGUMENT, "recipe: WHERE, TENSOR: ..".
// REQUIRES: the tensor is float32 and factors are its own.
Status ProjectTable(TensorId id, LowRank factors, const std::string& where, LoadedModel& model,
                    Reconstruction& found);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_PROJECT_TABLE_H_
