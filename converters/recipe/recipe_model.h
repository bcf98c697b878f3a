// A recipe's blocks filled from a checkpoint.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_MODEL_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_MODEL_H_

#include <cstddef>
#include <span>

#include "converters/families/families.h"
#include "converters/recipe/recipe.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

// The model before any pass; tensors that are the checkpoint's are read later (LoadedModel::read),
// what is made of several now. The draft's tensors are called by their place: "embedding.table" (or
// "embedding.1.table" where there are several bins), its codebook "embedding.table.codebook",
// "recurrent.0.input_weight", "softmax.head.bias", "softmax.tails.0.table"; a tensor that two
// places name is stored once, under the first. Missing and unused tensors are refused all together.
// Errors: KINGLET_INVALID_CHECKPOINT, and those of the passes that make tables. REQUIRES: the
// recipe names blocks, threads >= 1.
Result<LoadedModel> ModelFromRecipe(const Recipe& recipe, std::span<const SourceTensor> weights,
                                    size_t threads);

// The embedding's one table, where it is a DeFINE unit's, stays a unit, and a stream keeps so many
// rows that it made.
void KeepUnit(uint32_t cache_rows, Recipe& recipe);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_MODEL_H_
