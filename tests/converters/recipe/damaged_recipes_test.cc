// Recipes with one value changed at a time: another kind of value, a number out of range, a member
// that is missing or unknown. Each recipe is refused in one line that names the location in the
// JSON, or parsed; then, with its tensors, it makes a model or is refused in one line.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_family.h"
#include "converters/recipe/recipe_model.h"

namespace kinglet::damaged_recipes_test {
namespace {

// With sanitizers, every kind of damage at fewer locations.
#ifdef KINGLET_SANITIZED
constexpr size_t kEvery = 29;
#else
constexpr size_t kEvery = 1;
#endif

using Json = nlohmann::ordered_json;

struct Case {
  std::string name, recipe, checkpoint;
};

std::vector<Case> Cases() {
  const std::string data = std::string(KINGLET_TEST_DATA) + "/";
  const std::string examples = std::string(KINGLET_EXAMPLES) + "/recipes/";
  std::vector<Case> cases = {
      {"TransformerXl", examples + "blocks-transformer-xl.json",
       data + "transformer-xl-variants/kimi-base/model.pt"},
      {"Fairseq", examples + "blocks-fairseq.json",
       data + "fairseq-variants/args-tied-legacy/model.pt"},
  };
  for (const char* const name : {"reference-define", "reference-dpq", "reference-slim"}) {
    cases.push_back({name, examples + name + ".json", data + "recipes/" + name + "/model.pt"});
  }
  for (const char* const name :
       {"adaptive-tied-tables", "binned-three", "classes", "define-residual-low-rank", "dpq-vq",
        "everything", "full-no-bias-cache", "hashed", "kd-mean-linear", "low-rank-tied", "shu",
        "slim-hashed"}) {
    const std::string folder = data + "kinglet-torch/" + name + "/model";
    cases.push_back({name, folder + ".recipe.json", folder + ".pt"});
  }
  for (Case& c : cases) std::erase(c.name, '-');
  return cases;
}

// Calls `use` with the location that changed and the changed text.
void Change(const Json& whole,
            const std::function<void(const std::string& place, const std::string& text)>& use) {
  const Json values[] = {nullptr,
                         false,
                         true,
                         -1,
                         0,
                         1,
                         7,
                         1e18,
                         0.5,
                         "other",
                         Json::array(),
                         {1, 2},
                         {5, 4},
                         {"a"},
                         {{"tensor", "a"}},
                         {{"x", 1}},
                         Json::object()};
  const Json flat = whole.flatten();
  std::set<std::string> seen;
  size_t count = 0;
  for (auto& [pointer, unused] : flat.items()) {
    for (Json::json_pointer place(pointer); !place.empty(); place.pop_back()) {
      if (!seen.insert(place.to_string()).second) break;
      for (const Json& value : values) {
        if (count++ % kEvery != 0) continue;
        Json changed = whole;
        changed[place] = value;
        use(place.to_string(), changed.dump());
      }
      if (whole[place.parent_pointer()].is_object()) {
        Json changed = whole;
        changed[place.parent_pointer()].erase(place.back());
        use(place.to_string(), changed.dump());
      }
      if (whole[place].is_object()) {
        Json changed = whole;
        changed[place]["surplus"] = 1;
        use(place.to_string() + "/surplus", changed.dump());
      }
    }
  }
}

Status Load(const Recipe& recipe, const CheckpointFile& opened) {
  if (recipe.embedding || recipe.recurrent || recipe.softmax) {
    return ModelFromRecipe(recipe, opened.tensors, 1).status();
  }
  return FamilyTables::Make(recipe, opened.tensors, {}, 1).status();
}

class DamagedRecipes : public testing::TestWithParam<Case> {};

TEST_P(DamagedRecipes, NameTheirPlace) {
  const auto opened = OpenCheckpointFile(GetParam().checkpoint);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  std::ifstream file(GetParam().recipe);
  const Json whole = Json::parse(file);
  const auto sound = ParseRecipe(*RecipeNode::Parse("r", whole.dump()));
  ASSERT_TRUE(sound.ok()) << sound.status().message();
  const Status made = Load(*sound, *opened);
  ASSERT_TRUE(made.ok()) << made.message();

  size_t unreadable = 0, named = 0, refused = 0, accepted = 0;
  Change(whole, [&](const std::string& place, const std::string& text) {
    const auto node = RecipeNode::Parse("r", text);
    ASSERT_TRUE(node.ok()) << node.status().message();
    const auto recipe = ParseRecipe(*node);
    const Status status = recipe.ok() ? Load(*recipe, *opened) : recipe.status();
    ++(!recipe.ok() ? unreadable : status.ok() ? accepted : refused);
    if (status.ok()) return;
    const std::string& message = status.message();
    EXPECT_EQ(message.find('\n'), std::string::npos) << place << ": " << message;
    EXPECT_NE(message.find("expected "), std::string::npos) << place << ": " << message;
    if (recipe.ok()) {
      EXPECT_TRUE(status.code() == KINGLET_INVALID_CHECKPOINT ||
                  status.code() == KINGLET_UNSUPPORTED || status.code() == KINGLET_INVALID_ARGUMENT)
          << place << ": " << message;
      return;
    }
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << place << ": " << message;
    EXPECT_EQ(message.rfind("recipe: r, line 1, column ", 0), 0u) << place << ": " << message;
    const std::string parent = place.substr(0, place.rfind('/'));
    named +=
        message.find(parent + ":") != std::string::npos || message.find(place) != std::string::npos
            ? 1
            : 0;
  });
  EXPECT_GT(unreadable, 0u);
  EXPECT_GT(accepted + refused, 0u);
  // The refusal may name another value that does not fit the changed one.
  EXPECT_GT(named * 10, unreadable * 8) << named << " of " << unreadable;
}

INSTANTIATE_TEST_SUITE_P(All, DamagedRecipes, testing::ValuesIn(Cases()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kinglet::damaged_recipes_test
