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
  EXPECT_EQ(refusal("[]"),
            "v: JSON: expected at least one word, found none (give the model's own vocabulary)");
  EXPECT_EQ(refusal(R"(["a", 3])"),
            "v: entry 1: expected a word, found a number (write each word as a string)");
  EXPECT_EQ(refusal(R"(["a", ""])"),
            "v: entry 1: expected a word, found an empty string (write each word as a string)");
  EXPECT_NE(refusal(R"([["a"]])").find("entry 0: expected a word, found a list"),
            std::string::npos);
  EXPECT_NE(refusal(R"([null])").find("entry 0: expected a word, found null"), std::string::npos);
  EXPECT_NE(refusal(R"([{"a": 0}])").find("entry 0: expected a word, found an object"),
            std::string::npos);
  EXPECT_NE(refusal(R"("a")").find("JSON: expected an array of strings, or an object of words"),
            std::string::npos);
  EXPECT_EQ(
      refusal(R"(["a")"),
      "v: byte 5: expected a JSON array of strings, found no JSON (write one with json.dump)");
  EXPECT_EQ(
      refusal(""),
      "v: byte 1: expected a JSON array of strings, found no JSON (write one with json.dump)");
}

// The ids decide the order.
TEST(ParseVocabularyJson, AnObjectOfWordsAndIds) {
  EXPECT_EQ(*ParseVocabularyJson("v", R"({"b": 1, "a": 0, "\n": 2})"),
            (std::vector<std::string>{"a", "b", "\n"}));
  const auto refusal = [](const std::string& text) {
    return ParseVocabularyJson("v", text).status().message();
  };
  const std::string others =
      "v: JSON: expected ids 0 to 1, each once, found others (write the words as an array, in the "
      "order of the ids)";
  EXPECT_EQ(refusal(R"({"a": 0, "b": 0})"), others);
  EXPECT_EQ(refusal(R"({"a": 1, "b": 2})"), others);
  EXPECT_NE(refusal("{}").find("expected at least one word"), std::string::npos);
  EXPECT_NE(refusal(R"({"a": -1})").find("entry \"a\": expected an id, found a number"),
            std::string::npos);
  EXPECT_NE(
      refusal(R"({"version": "1.0", "words": {"a": 0}})")
          .find("entry \"version\": expected an id, found a string (write the object of words "
                "and ids alone)"),
      std::string::npos);
  EXPECT_EQ(
      refusal(R"({"version": "1.0", "model": {"vocab": {"a": 0, "b": 2}}})"),
      "v: model/vocab and added_tokens: expected a word of each id from 0, found none of id 1 "
      "(write the words as a JSON array, in the order of the ids)");
}

// Hugging Face's tokenizers write these: models WordLevel or BPE, and Unigram.
TEST(VocabularyJson, TokenizerFiles) {
  using Strings = std::vector<std::string>;
  const auto words = [](const std::string& model, const std::string& added) {
    const auto read = ParseVocabularyJson(
        "f", R"({"version": "1.0", "truncation": null, "added_tokens": [)" + added +
                 R"(], "normalizer": {"type": "Lowercase", "list": [1, true]}, "model": )" + model +
                 "}");
    return read.ok() ? *read : Strings{read.status().message()};
  };
  const std::string added = R"({"id": 2, "content": "[END]", "special": true})";
  EXPECT_EQ(words(R"({"type": "WordLevel", "vocab": {"b": 1, "a": 0}, "unk_token": "a"})", added),
            (Strings{"a", "b", "[END]"}));
  EXPECT_EQ(
      words(R"({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b", ["b", "a"]]})", ""),
      (Strings{"a", "b"}));
  EXPECT_EQ(words(R"({"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0], ["b", -1.5]]})", added),
            (Strings{"a", "b", "[END]"}));
  EXPECT_NE(words(R"({"vocab": {"a": 0, "b": 2}})", "")[0].find("f: "), std::string::npos);
}

}  // namespace
}  // namespace kinglet::vocabulary_json_test
