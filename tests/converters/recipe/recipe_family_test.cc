#include "converters/recipe/recipe_family.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recipe_family_test {
namespace {

const std::string kRecipe = R"({"family": "f", "tables": {"words": {"define": {
    "map": [{"table": "map", "scale": 1}],
    "layers": [{"weight": "w", "layout": "out_in", "activation": "none", "residual": "none"}]}}}})";

SourceWeights Weights() {
  return {FloatTensor("map", {3, 2}, {1, 2, 3, 4, 5, 6}), FloatTensor("other", {1}, {7}),
          FloatTensor("w", {2, 2}, {1, 1, 0, 2})};
}

TEST(WithTables, ATableInPlaceOfWhatItIsMadeOf) {
  const auto seen = WithTables(RecipeOf(kRecipe), Weights(), 2);
  ASSERT_TRUE(seen.ok()) << seen.status().message();
  ASSERT_EQ(seen->size(), 2u);
  EXPECT_EQ((*seen)[0].name, "other");
  EXPECT_EQ((*seen)[1].name, "words");
  EXPECT_EQ((*seen)[1].shape, (Shape{3, 2}));
  // Rows (a, b) become (a + b, 2 b).
  EXPECT_EQ(*(*seen)[1].values(), (std::vector<float>{3, 4, 7, 8, 11, 12}));
}

TEST(WithTables, WithoutTablesNothingChanges) {
  const auto seen = WithTables(RecipeOf(R"({"family": "f"})"), Weights(), 1);
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->size(), 3u);
}

TEST(WithTables, Refusals) {
  SourceWeights has = Weights(), lacks = Weights();
  has.push_back(FloatTensor("words", {3, 2}, std::vector<float>(6)));
  lacks.erase(lacks.begin());
  const struct {
    const SourceWeights& weights;
    const char* message;
  } cases[] = {{has, "tensor 'words': expected none, as the recipe makes it"},
               {lacks, "tensor 'map': expected a tensor of this name, found none"}};
  for (const auto& one : cases) {
    const Status status = WithTables(RecipeOf(kRecipe), one.weights, 1).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
    EXPECT_NE(status.message().find(one.message), std::string::npos) << status.message();
  }
  for (const auto& [json, message] :
       {std::pair(R"({"family": "f", "tables": {"words": "map"}})", "a \"define\" table"),
        std::pair(R"({"tables": {}, "embedding": {"scale": 1, "table": "e"}})",
                  "none without a family")}) {
    const Status status = ParseRecipe(Node(json)).status();
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace kinglet::recipe_family_test
