// Makes the model that a recipe describes from a checkpoint's tensors.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_MODEL_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_MODEL_H_

#include <cstddef>
#include <span>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/recipe/recipe.h"
#include "kinglet/status.h"

namespace kinglet {

// The model before any pass. The draft's tensors are named after their block: "embedding.table" (or
// "embedding.1.table" if there are several bins) and its codebook "embedding.table.codebook",
// "recurrent.0.input_weight", "softmax.head.bias", "softmax.tails.0.table". A tensor that the
// recipe names twice is stored once, under the first name. Tensors that are stored as in the
// checkpoint get their values later (LoadedModel::read); computed tensors have them at once.
// Errors: KINGLET_INVALID_CHECKPOINT, with all missing and unused tensors in one message, and those
// of the passes that make tables. REQUIRES: the recipe names blocks, threads >= 1.
Result<LoadedModel> ModelFromRecipe(const Recipe& recipe, std::span<const CheckpointTensor> weights,
                                    size_t threads);

// Every DeFINE unit among the tables of the embedding, or of the family's, stays in the model, and
// each stream caches `cache_rows` of its rows.
void KeepUnits(uint32_t cache_rows, Recipe& recipe);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_MODEL_H_
