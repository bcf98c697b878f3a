#include "converters/recipe/recipe_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/recipe/recipe_node.h"

namespace kinglet {
namespace {

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

Result<Recipe> ReadRecipe(const std::string& path, const std::string& checkpoint, bool trusted) {
  const std::string step = "docs/RECIPES.md describes all keys";
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode node, WithNextStep(RecipeNode::Read(path), step));
  KINGLET_ASSIGN_OR_RETURN(Recipe recipe, WithNextStep(ParseRecipe(node), step));
  recipe.folder = {FolderOf(path), trusted};
  recipe.source_folder = {FolderOf(checkpoint), trusted};
  return recipe;
}

}  // namespace

std::string RecipePathNextTo(const std::string& checkpoint) {
  return std::filesystem::path(checkpoint).replace_extension(".recipe.json").string();
}

Result<Recipe> ChooseRecipe(const std::string& checkpoint, const std::string& path, bool trusted) {
  Recipe named;
  if (!path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(named, ReadRecipe(path, checkpoint, trusted));
    if (named.has_network() || !named.family.empty()) return named;
  }
  const std::string default_path = RecipePathNextTo(checkpoint);
  std::error_code ignored;
  if (!std::filesystem::exists(default_path, ignored)) return named;
  KINGLET_ASSIGN_OR_RETURN(Recipe recipe, ReadRecipe(default_path, checkpoint, false));
  const bool names_place = !named.state_dict.empty() || !named.prefix.empty();
  if (names_place) {
    recipe.state_dict = std::move(named.state_dict);
    recipe.prefix = std::move(named.prefix);
  }
  if (!path.empty() && (!names_place || !named.passes.empty())) {
    recipe.passes = std::move(named.passes);
    recipe.folder = std::move(named.folder);
  }
  recipe.unused.insert(recipe.unused.end(), named.unused.begin(), named.unused.end());
  if (recipe.has_network() && !named.zeros.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", path,
                           "no \"zeros\" for the blocks of " + default_path,
                           "some (omit those tensors there)");
  }
  recipe.zeros.insert(recipe.zeros.end(), named.zeros.begin(), named.zeros.end());
  return recipe;
}

}  // namespace kinglet
