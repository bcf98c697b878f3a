// Makes the Transformer decoder that a recipe describes.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_TRANSFORMER_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_TRANSFORMER_H_

#include <cstdint>

#include "converters/network/network.h"
#include "converters/recipe/recipe.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Adds the tensors, called transformer.0.qkv_weight and so on, of a decoder that reads vectors of
// `width` values. Errors: those of Network::AddRef. REQUIRES: the recipe has a layer.
Result<TransformerDecoder> MakeTransformer(const TransformerRecipe& recipe, uint32_t width,
                                           Network& network);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_TRANSFORMER_H_
