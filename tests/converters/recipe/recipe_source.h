// Tensors in memory for tests of recipes: floats, or integers for codes.
#ifndef KINGLET_TESTS_CONVERTERS_RECIPE_RECIPE_SOURCE_H_
#define KINGLET_TESTS_CONVERTERS_RECIPE_RECIPE_SOURCE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/recipe/recipe.h"
#include "tests/support/model_builder.h"

namespace kinglet {

inline CheckpointTensor FloatTensor(std::string name, std::vector<uint64_t> shape,
                                    std::vector<float> values) {
  return {std::move(name), std::move(shape),
          [values = std::move(values)]() -> Result<std::vector<float>> { return values; }};
}
// Random values, which depend on the name.
inline CheckpointTensor RandomTensor(const std::string& name, std::vector<uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  TestRandom random(std::hash<std::string>()(name));
  std::vector<float> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(random.Signed());
  return FloatTensor(name, std::move(shape), std::move(values));
}
inline CheckpointTensor IntegerTensor(std::string name, std::vector<uint64_t> shape,
                                      std::vector<int64_t> values) {
  CheckpointTensor tensor =
      FloatTensor(std::move(name), std::move(shape), {values.begin(), values.end()});
  tensor.integers = [values = std::move(values)]() -> Result<std::vector<int64_t>> {
    return values;
  };
  return tensor;
}

inline RecipeNode NodeOf(const std::string& json) {
  auto node = RecipeNode::Parse("r", json);
  EXPECT_TRUE(node.ok()) << node.status().message();
  return *std::move(node);
}
inline Recipe RecipeOf(const std::string& json) {
  auto recipe = ParseRecipe(NodeOf(json));
  EXPECT_TRUE(recipe.ok()) << recipe.status().message() << "\n" << json;
  return *std::move(recipe);
}
// The recipe of a table, parsed as the table of an embedding.
inline TableRecipe TableOf(const std::string& json) {
  return RecipeOf(R"({"embedding": {"scale": 1, "table": )" + json +
                  R"(}, "recurrent": {"cell": "lstm", "torch": "lstm", "layers": 1},
                 "softmax": {"table": "s"}})")
      .embedding->bins[0]
      .table;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_RECIPE_RECIPE_SOURCE_H_
