// A recipe's "blocks": the blocks of a model field by field, as `kinglet inspect --json` prints
// them, with references to the checkpoint's tensors in the place of the model's. For networks that
// the other keys of a recipe cannot describe: encoders, masked models, dense layers.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_BLOCKS_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_BLOCKS_H_

#include <string>
#include <vector>

#include "converters/network/network.h"
#include "converters/network/tensor_ref.h"
#include "converters/recipe/recipe_node.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

struct BlocksRecipe {
  // A tensor of the model: the values of all parts, one after the other, changed.
  struct Tensor {
    std::string name;  // "encoder.stack.layers.0.qkv_weight"
    std::vector<TensorRef> parts;
    Change change;
    bool kept = false;  // stays float32: norms, positions
  };
  std::vector<Block> blocks;  // a TensorId is an index of `tensors`
  std::vector<Tensor> tensors;
};

// Reads "blocks" and "layout" of a recipe. Appends the names of the checkpoint's tensors to
// `references`. Errors: KINGLET_INVALID_ARGUMENT naming the location in the JSON.
Result<BlocksRecipe> ParseBlocks(const RecipeNode& root, std::vector<std::string>& references);

// Adds the tensors and the blocks to the network, and sets the size of its vocabulary. Errors:
// KINGLET_INVALID_CHECKPOINT naming the tensor.
Status AddBlocks(const BlocksRecipe& recipe, Network& network);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_BLOCKS_H_
