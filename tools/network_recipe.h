// The network that a family makes of a checkpoint, as a recipe.
#ifndef KINGLET_TOOLS_NETWORK_RECIPE_H_
#define KINGLET_TOOLS_NETWORK_RECIPE_H_

#include <optional>
#include <string>

#include "converters/families/families.h"

namespace kinglet {

// JSON with the network's blocks field by field and references to the checkpoint's tensors, which
// converts to the family's model, for a user whose network differs from the family's. Returns
// nullopt if no family reads the checkpoint, or if its model has what no recipe of blocks states:
// codes, activation quantisers, values that a family computes in a way of its own.
std::optional<std::string> NetworkRecipe(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_NETWORK_RECIPE_H_
