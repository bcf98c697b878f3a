// The folder in which a recipe finds the files that it names.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_FOLDER_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_FOLDER_H_

#include <string>

#include "kinglet/status.h"

namespace kinglet {

struct RecipeFolder {
  std::string path;  // "": the current folder
  // Whether names may leave the folder: the user has named the recipe and trusts it.
  bool trusted = false;

  // The path of the file `name`. Errors: KINGLET_INVALID_ARGUMENT for a name that leaves the folder
  // (FileInFolder); `where` is the location in the recipe.
  Result<std::string> File(const std::string& where, const std::string& name) const;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_FOLDER_H_
