#include "converters/recipe/recipe_text.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace kinglet {
namespace {

std::string ScalarText(const nlohmann::json& scalar) {
  return scalar.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void AppendValue(const RecipeValue& value, size_t indent, size_t level, std::string& text) {
  if (value.kind == RecipeValue::Kind::kScalar) {
    text += ScalarText(value.scalar);
    return;
  }
  const std::string_view brackets = value.is_object() ? "{}" : "[]";
  text += brackets[0];
  for (size_t i = 0; i < value.items.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    text.append(indent * (level + 1), ' ');
    if (value.is_object()) text += ScalarText(value.names[i]) + ": ";
    AppendValue(value.items[i], indent, level + 1, text);
  }
  if (!value.items.empty()) {
    text += '\n';
    text.append(indent * level, ' ');
  }
  text += brackets[1];
}

}  // namespace

std::string RecipeText(const RecipeValue& value, size_t indent) {
  std::string text;
  AppendValue(value, indent, 0, text);
  return text + "\n";
}

}  // namespace kinglet
