#include "converters/recipe/recipe_folder.h"

#include <filesystem>
#include <optional>

#include "converters/checkpoints/named_file.h"
#include "converters/checkpoints/quoted.h"

namespace kinglet {

Result<std::string> RecipeFolder::File(const std::string& where, const std::string& name) const {
  if (trusted) return (std::filesystem::path(path) / name).string();
  if (std::optional<std::string> file = FileInFolder(path, name)) return *std::move(file);
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", where,
                         "the name of a file in " + (path.empty() ? "this folder" : path),
                         QuotedName(name) +
                             ", which is outside (copy the file there, or give the recipe with "
                             "--recipe and --trust-recipe-paths)");
}

}  // namespace kinglet
