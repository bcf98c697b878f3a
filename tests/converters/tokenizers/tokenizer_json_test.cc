#include "converters/tokenizers/tokenizer_json.h"

#include <gtest/gtest.h>

#include <string>

namespace kinglet::tokenizer_json_test {
namespace {

TEST(TokenizerJson, ObjectsAreReadToALimitedDepth) {
  EXPECT_TRUE(LooksLikeJsonObject(" \n{"));
  EXPECT_FALSE(LooksLikeJsonObject(""));
  EXPECT_FALSE(LooksLikeJsonObject("[1]"));
  EXPECT_EQ(ValueAt(*ParseTokenizerJson(R"({"a": {"b": 3}})"), {"a", "b"}).number(), 3u);
  EXPECT_TRUE(ValueAt(*ParseTokenizerJson(R"({"a": 3})"), {"a", "b"}).is_null());
  for (const char* const text : {"", "{", "[]", "{\"a\": 1e}", "3"}) {
    EXPECT_EQ(ParseTokenizerJson(text).status().code(), KINGLET_INVALID_CHECKPOINT) << text;
  }
  const std::string deep =
      "{\"model\": " + std::string(400000, '[') + std::string(400000, ']') + "}";
  const auto refused = ParseTokenizerJson(deep);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("at most 32 levels"), std::string::npos);
}

TEST(TokenizerJson, ShortTextsAreOneLine) {
  EXPECT_EQ(ShortText(JsonValue()), "none");
  EXPECT_EQ(ShortText({.scalar = "a\nb"}), R"("a\nb")");
  EXPECT_EQ(ShortText({.scalar = std::string(100, 'a')}).size(), 62u);
  EXPECT_EQ(ShortText(ArrayValue()), "a list");
  EXPECT_EQ(ShortText(ObjectValue()), "an object");
}

}  // namespace
}  // namespace kinglet::tokenizer_json_test
