// A recipe's "blocks": the blocks of a model field by field, as `kinglet inspect --json` prints
// them, with references to the checkpoint's tensors in the place of the model's. For networks that
// the other keys of a recipe cannot describe: encoders, masked models, dense layers.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_BLOCKS_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_BLOCKS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
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
    std::string name;   // "encoder.stack.layers.0.qkv_weight"
    std::string field;  // "qkv_weight"
    std::vector<TensorRef> parts;
    Change change;
    Shape shape = {};               // empty: that of the parts
    std::optional<Role> role = {};  // without a value: RoleOf
    bool derived = false;           // EncodedTensor::derived
  };
  std::vector<Block> blocks;  // a TensorId is an index of `tensors`
  std::vector<Tensor> tensors;
};

// The names of roles in a recipe, in their order.
inline constexpr std::array<std::string_view, 3> kRoleNames = {"kept", "quantised", "pruned"};
// The role of a block's tensor whose recipe states none: norms and positions are kept.
Role RoleOf(std::string_view field, const Shape& shape);

// Reads "blocks" and "layout" of a recipe, or the one block of "transformer". Appends the names of
// the checkpoint's tensors to `references`. Errors: KINGLET_INVALID_ARGUMENT naming the location in
// the JSON.
Result<BlocksRecipe> ParseBlocks(const RecipeNode& root, std::vector<std::string>& references);
Result<BlocksRecipe> ParseTransformer(const RecipeNode& node, std::vector<std::string>& references);

// Adds the tensors and the blocks to the network, and sets the size of its vocabulary. Errors:
// KINGLET_INVALID_CHECKPOINT naming the tensor.
Status AddBlocks(const BlocksRecipe& recipe, Network& network);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_BLOCKS_H_
