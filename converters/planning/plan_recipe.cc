#include "converters/planning/plan_recipe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/checkpoints/json_value.h"
#include "converters/recipe/recipe_node.h"
#include "converters/recipe/recipe_text.h"
#include "format/input_file.h"
#include "format/utf8.h"

namespace kinglet {
namespace {

// The base recipe's members; it was read and parsed before.
Result<JsonValue> BaseOf(const std::string& path) {
  if (path.empty()) return ObjectValue();
  KINGLET_RETURN_IF_ERROR(RecipeNode::Read(path).status());  // reports what is wrong, and where
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  // The file is read again, and may have changed in the meantime.
  KINGLET_RETURN_IF_ERROR(RecipeNode::Parse(path, text).status());
  JsonValue recipe = JsonValueBuilder().Build(text);
  const auto calibrates = [](const JsonValue& pass) {
    const JsonValue* const name = pass.Find("pass");
    return name != nullptr && name->IsText("calibrate");
  };
  const JsonValue* const passes = recipe.Find("passes");
  if (!recipe.is_object() ||
      (passes != nullptr && std::any_of(passes->items.begin(), passes->items.end(), calibrates))) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "plan", path,
                           "a recipe that does not calibrate", "one that does");
  }
  return recipe;
}

// The name of a choice that is not the first.
template <size_t kCount, class Choice>
void AddName(const char* key, const std::array<std::string_view, kCount>& names, Choice choice,
             JsonValue& pass) {
  const auto index = static_cast<size_t>(choice);
  if (index != 0) pass.Set(key, std::string(names[index]));
}

JsonValue Texts(const std::vector<std::string>& texts) {
  JsonValue array = ArrayValue();
  for (const std::string& text : texts) array.Append(text);
  return array;
}

JsonValue PassOf(const char* name) {
  JsonValue pass = ObjectValue();
  return pass.Set("pass", name);
}

}  // namespace

Result<std::string> PlanRecipe(const SensitivityRecord& record, const CompressionPlan& plan,
                               const PlanQuantisers& quantisers, const std::string& base) {
  if (!IsUtf8(quantisers.calibration)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "plan", quantisers.calibration,
                           "a path in UTF-8, as JSON needs", "other bytes");
  }
  KINGLET_ASSIGN_OR_RETURN(JsonValue recipe, BaseOf(base));
  const JsonValue* const before = recipe.Find("passes");
  JsonValue passes = before != nullptr ? *before : ArrayValue();
  JsonValue fractions = ObjectValue();
  std::map<std::tuple<uint64_t, uint64_t, CodeForm>, std::vector<std::string>> coded;
  std::map<uint64_t, std::vector<std::string>> narrow;
  std::map<int, std::vector<std::string>> quantised;
  std::vector<std::string> rest = record.rest;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupPlan& group = plan.groups[i];
    for (const std::string& name : record.groups[i].tensors) {
      if (group.sparsity) fractions.Set(name, *group.sparsity);
      if (group.rank) narrow[*group.rank].push_back(name);
      // The factors of a low rank: NAME and, where it had none, NAME.projection.
      if (group.bits) quantised[*group.bits].push_back(group.rank ? name + "*" : name);
      if (!group.codes) continue;
      coded[{group.codes->positions, group.codes->sub_vectors, group.codes->form}].push_back(name);
      rest.push_back(name + ".codebook");
    }
  }
  if (!fractions.items.empty()) {
    passes.Append(PassOf("prune").Set("fractions", std::move(fractions)));
  }
  for (const auto& [change, names] : coded) {
    const auto& [positions, sub_vectors, form] = change;
    JsonValue pass = PassOf("code");
    pass.Set("tensors", Texts(names)).Set("positions", positions);
    if (form == CodeForm::kSum) pass.Set("combine", "sum");
    if (form == CodeForm::kSlim) pass.Set("pools", "one");
    if (form == CodeForm::kHashed) pass.Set("mapping", "hashed");
    passes.Append(pass.Set("sub_vectors", sub_vectors));
  }
  for (const auto& [rank, names] : narrow) {
    passes.Append(PassOf("low_rank").Set("tensors", Texts(names)).Set("rank", rank));
  }
  if (!quantised.empty()) {
    std::vector<std::string>& others = quantised[record.rest_bits];
    others.insert(others.end(), rest.begin(), rest.end());
    for (const auto& [bits, names] : quantised) {
      if (names.empty()) continue;
      JsonValue pass = PassOf("quantise");
      pass.Set("tensors", Texts(names)).Set("bits", bits);
      AddName("scale_by", kScaleByNames, quantisers.scale_by, pass);
      AddName("round_by", kRoundByNames, quantisers.round_by, pass);
      passes.Append(std::move(pass));
    }
    if (!quantisers.calibration.empty()) {
      JsonValue pass = PassOf("calibrate");
      pass.Set("text", quantisers.calibration).Set("bits", record.rest_bits);
      AddName("range_by", kRangeRuleNames, quantisers.range_by, pass);
      if (quantisers.percentile) pass.Set("percentile", *quantisers.percentile);
      passes.Append(std::move(pass));
    }
  }
  recipe.Set("passes", std::move(passes));
  constexpr size_t kIndent = 1;
  return RecipeText(recipe, kIndent);
}

}  // namespace kinglet
