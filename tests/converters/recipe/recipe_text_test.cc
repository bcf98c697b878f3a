#include "converters/recipe/recipe_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace kinglet::recipe_text_test {
namespace {

std::string Again(const std::string& json, size_t indent) {
  return RecipeText(JsonValueBuilder().Build(json), indent);
}

TEST(RecipeText, IsTheSameValue) {
  const std::string wide = "[" + std::string(120, '1') + "]";
  for (const std::string& json :
       {std::string("{}"), std::string("[]"), std::string("7"), std::string("\"\""),
        std::string("null"), std::string("[[], {}, [{}]]"), std::string(R"({"a": {}})"), wide,
        std::string(R"({"b": [1, -2, 2.5, 1e300, true, false, null, "x\"y\\z\u0001\n", "\u00e9",
           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
           "a": {"c": {"d": [[1], [2, [3]]]}}, "\"\n": 18446744073709551615})")}) {
    const auto value = nlohmann::ordered_json::parse(json);
    EXPECT_EQ(nlohmann::ordered_json::parse(Again(json, 2)), value) << json;
  }
}

TEST(RecipeText, LongValuesAreIndentedAndMembersKeepTheirOrder) {
  JsonValue value = ObjectValue();
  value.Set("b", 1).Set("a", std::string(90, 'x')).Set("b", ArrayValue());
  JsonValue array = ArrayValue();
  array.Append(0.5);
  array.Append(ObjectValue());
  value.Set("c", array);
  EXPECT_EQ(RecipeText(value, 2),
            "{\n  \"b\": [],\n  \"a\": \"" + std::string(90, 'x') + "\",\n  \"c\": [0.5, {}]\n}\n");
}

TEST(RecipeText, BytesThatAreNoTextAreReplaced) {
  JsonValue value = ObjectValue();
  value.Set("\xFF", std::string("a\xC3z"));
  EXPECT_EQ(RecipeText(value, 0), "{\"\uFFFD\": \"a\uFFFDz\"}\n");
}

}  // namespace
}  // namespace kinglet::recipe_text_test
