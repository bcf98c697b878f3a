#include "converters/recipe/recipe_names.h"

#include <algorithm>
#include <unordered_set>

#include "converters/checkpoints/quoted.h"
#include "converters/name_pattern.h"
#include "converters/network/network.h"

namespace kinglet {

bool LeavesOut(const Recipe& recipe, std::string_view name) {
  return std::any_of(recipe.unused.begin(), recipe.unused.end(),
                     [name](const std::string& pattern) { return MatchesPattern(pattern, name); });
}

Status CheckRecipeNames(const Recipe& recipe, std::span<const CheckpointTensor> weights,
                        size_t extra, const std::string& what) {
  Network names(weights);
  for (const CheckpointTensor& tensor : weights) {
    if (names.Find(tensor.name) == &tensor) continue;
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint",
                           "tensor " + QuotedName(tensor.name), "one of this name in all files",
                           "another in the recipe's \"sources\"");
  }
  std::unordered_set<std::string_view> asked;
  for (const std::string& name : recipe.references) {
    if (asked.insert(name).second) names.ClaimUnshaped(name);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i < extra || LeavesOut(recipe, weights[i].name)) names.RemoveExcluded(weights[i].name);
  }
  return names.CheckNames(what);
}

}  // namespace kinglet
