#include "converters/recipe/recipe_folder.h"

#include <gtest/gtest.h>

#include "tests/converters/synthetic.h"

namespace kinglet::recipe_folder_test {
namespace {

TEST(RecipeFolder, NamesStayUnlessTheRecipeIsTrusted) {
  const TemporaryFolder folder;
  folder.Write("home/a", "");
  RecipeFolder home = {folder.Path("home")};
  EXPECT_EQ(*home.File("/sources/x", "a"), home.path + "/a");
  const Status refused = home.File("/sources/x", "../secret").status();
  EXPECT_EQ(refused.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(refused.message(),
            "recipe: /sources/x: expected the name of a file in " + home.path +
                ", found '../secret', which is outside (copy the file there, or give the recipe "
                "with --recipe and --trust-recipe-paths)");
  home.trusted = true;
  EXPECT_EQ(*home.File("/sources/x", "../secret"), home.path + "/../secret");
  EXPECT_EQ(*home.File("/sources/x", "/secret"), "/secret");
  EXPECT_EQ(*RecipeFolder().File("/passes/0/text", "a"), "a");
}

}  // namespace
}  // namespace kinglet::recipe_folder_test
