#include "converters/recipe/recipe_text.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace kinglet {
namespace {

std::string ScalarText(const nlohmann::json& scalar) {
  return scalar.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr size_t kColumns = 100;

// The value on one line.
std::string LineText(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kScalar) return ScalarText(value.scalar);
  std::string text;
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) text += ", ";
    if (value.is_object()) text += ScalarText(value.names[i]) + ": ";
    text += LineText(value.items[i]);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// `used`: columns of the line before and after the value.
void AppendValue(const JsonValue& value, size_t indent, size_t level, size_t used,
                 std::string& text) {
  if (const std::string line = LineText(value); used + line.size() <= kColumns) {
    text += line;
    return;
  }
  if (value.kind == JsonValue::Kind::kScalar) {
    text += ScalarText(value.scalar);
    return;
  }
  const std::string_view brackets = value.is_object() ? "{}" : "[]";
  text += brackets[0];
  for (size_t i = 0; i < value.items.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    const std::string key = value.is_object() ? ScalarText(value.names[i]) + ": " : "";
    text += std::string(indent * (level + 1), ' ') + key;
    AppendValue(value.items[i], indent, level + 1, indent * (level + 1) + key.size() + 1, text);
  }
  text += "\n" + std::string(indent * level, ' ') + brackets[1];
}

}  // namespace

std::string RecipeText(const JsonValue& value, size_t indent) {
  std::string text;
  AppendValue(value, indent, 0, 0, text);
  return text + "\n";
}

}  // namespace kinglet
