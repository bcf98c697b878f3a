// Makes the embedding that a recipe describes.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_EMBEDDING_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_EMBEDDING_H_

#include <cstdint>
#include <string>

#include "converters/network/network.h"
#include "converters/recipe/recipe.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Adds the tensors, called `name`.table and so on (`name`.1.table if there are several bins), and
// sets the model's vocabulary size. Errors: those of
// AddTable. REQUIRES: threads >= 1.
Result<AdaptiveEmbedding> MakeEmbedding(const EmbeddingRecipe& recipe, const std::string& name,
                                        size_t threads, Network& network);

// Every DeFINE unit among the embedding's tables stays in the model, and each stream caches
// `cache_rows` of its rows.
void KeepUnits(uint32_t cache_rows, EmbeddingRecipe& recipe);

// Makes the product of `matrix`, of this shape, and the unit's output the unit's output.
void AppendProjection(TensorId matrix, const Shape& shape, KeptDefineUnit& unit);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_EMBEDDING_H_
