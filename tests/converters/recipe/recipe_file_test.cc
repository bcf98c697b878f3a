#include "converters/recipe/recipe_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/converters/synthetic.h"

namespace kinglet::recipe_file_test {
namespace {

const std::string kBlocks = R"({"embedding": {"scale": 1, "table": "next_to"},
                                "passes": [{"pass": "prune", "fraction": 0.5}]})";
const std::string kOtherBlocks = R"({"embedding": {"scale": 1, "table": "named"}})";
const std::string kPasses = R"({"passes": [{"pass": "quantise", "bits": 9}]})";

std::string TableOf(const Recipe& recipe) {
  return std::get<DenseRecipe>(recipe.embedding->bins.at(0).table.form).values.name;
}

TEST(RecipePathNextTo, IsNamedAfterTheCheckpoint) {
  EXPECT_EQ(RecipePathNextTo("a.b/small.pt"), "a.b/small.recipe.json");
  EXPECT_EQ(RecipePathNextTo("model.safetensors"), "model.recipe.json");
  EXPECT_EQ(RecipePathNextTo("a.b/model"), "a.b/model.recipe.json");
}

class ChosenRecipe : public testing::Test {
 protected:
  void WriteNextTo(const std::string& text) { folder_.Write("models/small.recipe.json", text); }
  Result<Recipe> Choose(const std::string& named) {
    return ChooseRecipe(checkpoint_, named.empty() ? "" : folder_.Write("other/named.json", named));
  }
  const TemporaryFolder folder_;
  const std::string checkpoint_ = folder_.Write("models/small.pt", "");
};

TEST_F(ChosenRecipe, IsTheOneNextToTheCheckpoint) {
  WriteNextTo(kBlocks);
  const auto recipe = Choose("");
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(TableOf(*recipe), "next_to");
  EXPECT_TRUE(std::holds_alternative<PrunePass>(recipe->passes.at(0).form));
  EXPECT_EQ(recipe->folder.path, folder_.Path("models"));
}

// Only names in the recipe that the user gives are ever trusted.
TEST_F(ChosenRecipe, KnowsWhoseNamesItHas) {
  WriteNextTo(kBlocks);
  const std::string named = folder_.Write("other/named.json", kPasses);
  for (const bool trusted : {false, true}) {
    const auto passes = ChooseRecipe(checkpoint_, named, trusted);
    ASSERT_TRUE(passes.ok()) << passes.status().message();
    EXPECT_EQ(passes->folder.path, folder_.Path("other"));
    EXPECT_EQ(passes->folder.trusted, trusted);
    EXPECT_EQ(passes->source_folder.path, folder_.Path("models"));
    EXPECT_FALSE(passes->source_folder.trusted);
    const auto found = ChooseRecipe(checkpoint_, "", trusted);
    EXPECT_FALSE(found->folder.trusted || found->source_folder.trusted);
  }
}

TEST_F(ChosenRecipe, IsTheNamedOneIfThatHasBlocksOrAFamily) {
  WriteNextTo(kBlocks);
  const auto blocks = Choose(kOtherBlocks);
  ASSERT_TRUE(blocks.ok()) << blocks.status().message();
  EXPECT_EQ(TableOf(*blocks), "named");
  EXPECT_EQ(blocks->passes.size(), 0u);
  EXPECT_EQ(blocks->folder.path, folder_.Path("other"));
  const auto family = Choose(R"({"family": "fairseq"})");
  ASSERT_TRUE(family.ok()) << family.status().message();
  EXPECT_EQ(family->family, "fairseq");
  EXPECT_FALSE(family->embedding);
}

TEST_F(ChosenRecipe, TakesThePassesOfANamedOneThatHasPassesAlone) {
  WriteNextTo(kBlocks);
  const auto recipe = Choose(kPasses);
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(TableOf(*recipe), "next_to");
  ASSERT_EQ(recipe->passes.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<QuantisePass>(recipe->passes[0].form));
  EXPECT_EQ(recipe->folder.path, folder_.Path("other"));
}

TEST_F(ChosenRecipe, TakesThePlaceOfANamedOne) {
  WriteNextTo(kBlocks);
  const auto recipe = Choose(R"({"state_dict": "ema", "prefix": "lm."})");
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(TableOf(*recipe), "next_to");
  EXPECT_EQ(recipe->state_dict, std::vector<std::string>{"ema"});
  EXPECT_EQ(recipe->prefix, "lm.");
  EXPECT_TRUE(std::holds_alternative<PrunePass>(recipe->passes.at(0).form));
  EXPECT_EQ(recipe->folder.path, folder_.Path("models"));
}

TEST_F(ChosenRecipe, LeavesTheBlocksToAFamilyWithoutARecipeNextToIt) {
  const auto passes = Choose(kPasses);
  ASSERT_TRUE(passes.ok()) << passes.status().message();
  EXPECT_FALSE(passes->embedding);
  EXPECT_EQ(passes->family, "");
  EXPECT_EQ(passes->passes.size(), 1u);
  const auto none = Choose("");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->embedding);
  EXPECT_EQ(none->passes.size(), 0u);
}

TEST_F(ChosenRecipe, IsRefusedByTheNameOfItsFile) {
  WriteNextTo("{");
  const auto refused = Choose("");
  EXPECT_EQ(refused.status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_NE(refused.status().message().find(folder_.Path("models/small.recipe.json")),
            std::string::npos);
  EXPECT_EQ(ChooseRecipe(checkpoint_, folder_.Path("missing.json")).status().code(),
            KINGLET_NOT_FOUND);
  // A recipe that exists and cannot be read is not skipped.
  std::filesystem::remove(folder_.Path("models/small.recipe.json"));
  std::filesystem::create_directory(folder_.Path("models/small.recipe.json"));
  EXPECT_FALSE(Choose("").ok());
}

}  // namespace
}  // namespace kinglet::recipe_file_test
