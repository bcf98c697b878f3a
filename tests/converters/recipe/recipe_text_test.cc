#include "converters/recipe/recipe_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace kinglet::recipe_text_test {
namespace {

std::string Again(const std::string& json, size_t indent) {
  return RecipeText(RecipeValueBuilder().Build(json), indent);
}

// The JSON library writes the same text.
TEST(RecipeText, IsWhatTheLibraryWrites) {
  for (const char* json :
       {"{}", "[]", "7", "\"\"", "null", "[[], {}, [{}]]", R"({"a": {}})",
        R"({"b": [1, -2, 2.5, 1e300, true, false, null, "x\"y\\z\u0001\n", "\u00e9"],
           "a": {"c": {"d": [[1], [2, [3]]]}}, "\"\n": 18446744073709551615})"}) {
    const auto value = nlohmann::ordered_json::parse(json);
    for (const int indent : {1, 2, 5}) {
      EXPECT_EQ(Again(json, static_cast<size_t>(indent)), value.dump(indent) + "\n") << json;
    }
  }
}

TEST(RecipeText, MembersKeepTheirPlaces) {
  RecipeValue value = ObjectValue();
  value.Set("b", 1).Set("a", "x").Set("b", ArrayValue());
  RecipeValue array = ArrayValue();
  array.Append(0.5);
  array.Append(ObjectValue());
  value.Set("c", array);
  EXPECT_EQ(RecipeText(value, 0), "{\n\"b\": [],\n\"a\": \"x\",\n\"c\": [\n0.5,\n{}\n]\n}\n");
}

TEST(RecipeText, BytesThatAreNoTextAreReplaced) {
  RecipeValue value = ObjectValue();
  value.Set("\xFF", std::string("a\xC3z"));
  EXPECT_EQ(RecipeText(value, 0), "{\n\"\uFFFD\": \"a\uFFFDz\"\n}\n");
}

}  // namespace
}  // namespace kinglet::recipe_text_test
