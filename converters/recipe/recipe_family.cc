#include "converters/recipe/recipe_family.h"

#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converters/recipe/recipe_table.h"
#include "converters/recipe/recipe_tensors.h"

namespace kinglet {

Result<SourceWeights> WithTables(const Recipe& recipe, const SourceWeights& weights,
                                 size_t threads) {
  if (recipe.tables.empty()) return weights;
  const std::unordered_set<std::string_view> used(recipe.references.begin(),
                                                  recipe.references.end());
  SourceWeights seen;
  for (const SourceTensor& tensor : weights) {
    if (used.contains(tensor.name)) continue;
    if (recipe.tables.contains(tensor.name)) {
      TensorRef ref;
      ref.name = tensor.name;
      return RefuseTensor(ref, "none, as the recipe makes it", "one in the checkpoint");
    }
    seen.push_back(tensor);
  }
  const RecipeTensors tensors(weights);
  for (const auto& [name, recipe_table] : recipe.tables) {
    KINGLET_ASSIGN_OR_RETURN(RecipeTable table, MakeTable(recipe_table, tensors, threads));
    const auto values = std::make_shared<const std::vector<float>>(std::move(table.dense));
    seen.push_back(
        {name, table.shape, [values]() -> Result<std::vector<float>> { return *values; }});
  }
  return seen;
}

}  // namespace kinglet
