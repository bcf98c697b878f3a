#include "converters/texts/vocabulary_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kinglet::vocabulary_json_test {
namespace {

TEST(ParseVocabularyJson, StringsInTheirOrder) {
  EXPECT_EQ(*ParseVocabularyJson("v", R"(["\n", " ", "a", "\u00e9", "\"", "\\"])"),
            (std::vector<std::string>{"\n", " ", "a", "\xC3\xA9", "\"", "\\"}));
  EXPECT_EQ(*ParseVocabularyJson("v", " [\"a\"]\n"), std::vector<std::string>{"a"});
}

TEST(ParseVocabularyJson, NamesTheEntry) {
  const auto refusal = [](const std::string& text) {
    return ParseVocabularyJson("v", text).status().message();
  };
  EXPECT_EQ(refusal("[]"), "v: JSON: expected at least one word, found none");
  EXPECT_EQ(refusal(R"(["a", 3])"), "v: entry 1: expected a word, found a number");
  EXPECT_EQ(refusal(R"(["a", ""])"), "v: entry 1: expected a word, found an empty string");
  EXPECT_EQ(refusal(R"([["a"]])"), "v: entry 0: expected a word, found a list");
  EXPECT_EQ(refusal(R"([null])"), "v: entry 0: expected a word, found null");
  EXPECT_EQ(refusal(R"({"a": 0})"), "v: JSON: expected an array of strings, found an object");
  EXPECT_EQ(refusal(R"("a")"), "v: JSON: expected an array of strings, found a string");
  EXPECT_EQ(refusal(R"(["a")"), "v: byte 5: expected a JSON array of strings, found no JSON");
  EXPECT_EQ(refusal(""), "v: byte 1: expected a JSON array of strings, found no JSON");
}

}  // namespace
}  // namespace kinglet::vocabulary_json_test
