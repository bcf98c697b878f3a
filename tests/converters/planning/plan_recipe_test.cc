#include "converters/planning/plan_recipe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace kinglet::plan_recipe_test {
namespace {

SensitivityRecord Record() {
  SensitivityRecord record;
  record.rest = {"bias"};
  record.groups = {{"a*", {"a1", "a2"}, 4, 4, 16}, {"t", {"t"}, 4, 4, 16}, {"c", {"c"}, 4, 4, 16}};
  return record;
}
CompressionPlan Plan() {
  CompressionPlan plan;
  plan.groups = {{0.5, 4, {}, 0, 0}, {{}, 9, {}, 0, 0}, {{}, {}, CodesChange{2, 8}, 0, 0}};
  return plan;
}

TEST(PlanRecipe, HasAPassForEachKindOfChange) {
  const auto recipe = PlanRecipe(Record(), Plan(), {.calibration = "cal.txt"}, "");
  ASSERT_TRUE(recipe.ok());
  EXPECT_EQ(*recipe, R"({
 "passes": [
  {"pass": "prune", "fractions": {"a1": 0.5, "a2": 0.5}},
  {"pass": "code", "tensors": ["c"], "positions": 2, "sub_vectors": 8},
  {"pass": "quantise", "tensors": ["a1", "a2"], "bits": 4},
  {"pass": "quantise", "tensors": ["t", "bias", "c.codebook"], "bits": 9},
  {"pass": "calibrate", "text": "cal.txt", "bits": 9}
 ]
}
)");
}

TEST(PlanRecipe, FormsOfCodesAndLowRanks) {
  CompressionPlan plan = Plan();
  plan.groups[0] = {{}, {}, CodesChange{2, 8, CodeForm::kSum}, 0, 0};
  plan.groups[1] = {{}, 5, {}, 0, 0, 3};
  plan.groups[2] = {{}, {}, CodesChange{2, 8, CodeForm::kSlim}, 0, 0};
  const auto recipe = PlanRecipe(Record(), plan, {}, "");
  ASSERT_TRUE(recipe.ok());
  EXPECT_EQ(*recipe, R"({
 "passes": [
  {"pass": "code", "tensors": ["a1", "a2"], "positions": 2, "combine": "sum", "sub_vectors": 8},
  {"pass": "code", "tensors": ["c"], "positions": 2, "pools": "one", "sub_vectors": 8},
  {"pass": "low_rank", "tensors": ["t"], "rank": 3},
  {"pass": "quantise", "tensors": ["t*"], "bits": 5},
  {"pass": "quantise", "tensors": ["bias", "a1.codebook", "a2.codebook", "c.codebook"], "bits": 9}
 ]
}
)");
}

TEST(PlanRecipe, ComesAfterThePassesOfTheRecipeThatWasMeasured) {
  const std::string path = testing::TempDir() + "plan_recipe_base.json";
  std::ofstream(path)
      << R"({"family": "awd-lstm", "passes": [{"pass": "half", "tensors": ["x"]}]})";
  CompressionPlan nothing;
  nothing.groups.resize(3);
  const auto recipe = PlanRecipe(Record(), nothing, {.calibration = "cal.txt"}, path);
  ASSERT_TRUE(recipe.ok());
  EXPECT_EQ(*recipe, R"({"family": "awd-lstm", "passes": [{"pass": "half", "tensors": ["x"]}]})"
                     "\n");
  std::ofstream(path) << R"({"passes": [{"pass": "calibrate", "text": "t", "bits": 9}]})";
  EXPECT_NE(PlanRecipe(Record(), nothing, {}, path)
                .status()
                .message()
                .find("a recipe that does not calibrate"),
            std::string::npos);
  EXPECT_FALSE(PlanRecipe(Record(), nothing, {}, path + ".none").ok());
}

TEST(PlanRecipe, APathThatJsonCannotHoldIsRefused) {
  EXPECT_NE(PlanRecipe(Record(), Plan(), {.calibration = "\xFF.txt"}, "")
                .status()
                .message()
                .find("expected a path in UTF-8"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::plan_recipe_test
