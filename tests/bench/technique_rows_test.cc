#include "bench/technique_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "converters/recipe/recipe.h"

namespace kinglet::technique_rows_test {
namespace {

const std::string kExamples = KINGLET_EXAMPLES;

TEST(TechniqueRows, AreWhatConvertTakes) {
  std::set<std::string> commands;
  for (const TechniqueRow& row : TechniqueRows()) {
    const ConvertOptions options = OptionsOf(row, {kExamples, "models", "others"}, "m.kgl");
    EXPECT_TRUE(commands.insert(CommandOf(row)).second) << CommandOf(row);
    EXPECT_EQ(options.output, "m.kgl");
    EXPECT_EQ(options.recipe.empty(), row.recipe.empty());
    if (row.base == TechniqueBase::kDemo) {
      EXPECT_TRUE(std::filesystem::exists(options.vocabulary)) << options.vocabulary;
      EXPECT_EQ(options.cache_capacity, 0u);
    } else if (row.base == TechniqueBase::kTransformer) {
      EXPECT_EQ(options.checkpoint, "others/" + std::string(row.checkpoint));
      EXPECT_TRUE(options.calibration_text.empty());
    } else {
      EXPECT_EQ(options.checkpoint, "models/" + std::string(row.checkpoint) + ".pt");
    }
    if (row.recipe.empty()) continue;
    const auto node = RecipeNode::Read(options.recipe);
    ASSERT_TRUE(node.ok()) << node.status().message();
    EXPECT_TRUE(ParseRecipe(*node).ok()) << options.recipe;
  }
}

TEST(TechniqueRows, EachBaseBeginsWithWhatItIsComparedWith) {
  const auto rows = TechniqueRows();
  std::set<TechniqueBase> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool same_base = i > 0 && rows[i - 1].base == rows[i].base;
    const bool of_its_own = rows[i].base == TechniqueBase::kTransformer;
    if (same_base && (!of_its_own || rows[i - 1].checkpoint == rows[i].checkpoint)) continue;
    if (!same_base) {
      EXPECT_TRUE(seen.insert(rows[i].base).second);
    }
    if (rows[i].base == TechniqueBase::kTrained) continue;
    EXPECT_TRUE(rows[i].recipe.empty() || of_its_own);
    EXPECT_EQ(rows[i].bits, 0);
  }
}

}  // namespace
}  // namespace kinglet::technique_rows_test
