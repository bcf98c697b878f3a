#include "converters/recipe/recipe_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recipe_names_test {
namespace {

TEST(RecipeNames, OfBothSidesAreAccountedForTogether) {
  CheckpointTensors weights;
  for (const char* name : {"m", "v", "scalar", "nan", "codes"}) {
    weights.push_back(FloatTensor(name, {1}, {1}));
  }
  Recipe recipe;
  recipe.references = {"m", "m", "codes", "absent", "gone"};
  recipe.unused = {"na*", "sc*r", "nothing*"};
  const Status status = CheckRecipeNames(recipe, weights, 0, "the recipe");
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  for (const char* part : {"absent", "gone", "'v'"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  EXPECT_EQ(status.message().find("nan"), std::string::npos) << status.message();
  recipe.references = {"m", "codes", "v"};
  EXPECT_TRUE(CheckRecipeNames(recipe, weights, 0, "the recipe").ok());
}

TEST(RecipeNames, TwoSourcesCannotHaveTensorsOfOneName) {
  const CheckpointTensors weights = {FloatTensor("a", {1}, {1}), FloatTensor("b", {1}, {1}),
                                     FloatTensor("a", {1}, {2})};
  Recipe recipe;
  recipe.references = {"a", "b"};
  EXPECT_EQ(CheckRecipeNames(recipe, weights, 0, "the recipe").message(),
            "checkpoint: tensor 'a': expected one of this name in all files, found another in "
            "the recipe's \"sources\"");
}

}  // namespace
}  // namespace kinglet::recipe_names_test
