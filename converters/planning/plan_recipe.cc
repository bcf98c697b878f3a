#include "converters/planning/plan_recipe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "converters/recipe/recipe_node.h"

namespace kinglet {
namespace {

using PlanJson = nlohmann::ordered_json;

// The base recipe's members; it was read and parsed before.
Result<PlanJson> BaseOf(const std::string& path) {
  PlanJson recipe = PlanJson::object();
  if (path.empty()) return recipe;
  KINGLET_RETURN_IF_ERROR(RecipeNode::Read(path).status());  // says what is wrong, and where
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  recipe = PlanJson::parse(text, nullptr, false);
  const auto calibrates = [](const PlanJson& pass) {
    return pass.is_object() && pass.contains("pass") && pass["pass"] == "calibrate";
  };
  if (!recipe.is_object() ||
      (recipe.contains("passes") &&
       std::any_of(recipe["passes"].begin(), recipe["passes"].end(), calibrates))) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "plan", path,
                           "a recipe that does not calibrate", "one that does");
  }
  return recipe;
}

// The name of a choice that is not the first.
template <size_t kCount, class Choice>
void AddName(const char* key, const std::array<std::string_view, kCount>& names, Choice choice,
             PlanJson& pass) {
  const auto index = static_cast<size_t>(choice);
  if (index != 0) pass[key] = std::string(names[index]);
}

}  // namespace

Result<std::string> PlanRecipe(const SensitivityRecord& record, const CompressionPlan& plan,
                               const PlanQuantisers& quantisers, const std::string& base) {
  KINGLET_ASSIGN_OR_RETURN(PlanJson recipe, BaseOf(base));
  PlanJson passes = recipe.contains("passes") ? recipe["passes"] : PlanJson::array();
  PlanJson fractions = PlanJson::object();
  std::map<std::pair<uint64_t, uint64_t>, std::vector<std::string>> coded;
  std::map<int, std::vector<std::string>> quantised;
  std::vector<std::string> rest = record.rest;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupPlan& group = plan.groups[i];
    for (const std::string& name : record.groups[i].tensors) {
      if (group.sparsity) fractions[name] = *group.sparsity;
      if (group.bits) quantised[*group.bits].push_back(name);
      if (!group.codes) continue;
      coded[{group.codes->positions, group.codes->sub_vectors}].push_back(name);
      rest.push_back(name + ".codebook");
    }
  }
  if (!fractions.empty()) passes.push_back({{"pass", "prune"}, {"fractions", fractions}});
  for (const auto& [shape, names] : coded) {
    passes.push_back({{"pass", "code"},
                      {"tensors", names},
                      {"positions", shape.first},
                      {"sub_vectors", shape.second}});
  }
  if (!quantised.empty()) {
    std::vector<std::string>& others = quantised[record.rest_bits];
    others.insert(others.end(), rest.begin(), rest.end());
    for (const auto& [bits, names] : quantised) {
      if (names.empty()) continue;
      passes.push_back({{"pass", "quantise"}, {"tensors", names}, {"bits", bits}});
      AddName("scale_by", kScaleByNames, quantisers.scale_by, passes.back());
      AddName("round_by", kRoundByNames, quantisers.round_by, passes.back());
    }
    if (!quantisers.calibration.empty()) {
      passes.push_back(
          {{"pass", "calibrate"}, {"text", quantisers.calibration}, {"bits", record.rest_bits}});
      AddName("range_by", kRangeRuleNames, quantisers.range_by, passes.back());
      if (quantisers.percentile) passes.back()["percentile"] = *quantisers.percentile;
    }
  }
  recipe["passes"] = std::move(passes);
  constexpr int kIndent = 1;
  return recipe.dump(kIndent) + "\n";
}

}  // namespace kinglet
