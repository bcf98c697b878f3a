#include "converters/recipe/recipe_node.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "converters/recipe/recipe.h"
#include "tests/converters/files.h"

namespace kinglet::recipe_node_test {
namespace {

using std::string_view_literals::operator""sv;

RecipeNode Parsed(std::string_view text) {
  const auto node = RecipeNode::Parse("r", text);
  EXPECT_TRUE(node.ok()) << node.status().message();
  return *node;
}

std::string Message(const Status& status) {
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status.message();
}
template <class T>
std::string Message(const Result<T>& result) {
  return Message(result.status());
}

std::string Nested(size_t depth, const std::string& open, const std::string& close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(RecipeNodeParse, RefusesWhatIsNoJsonAndSaysWhere) {
  const struct {
    std::string_view text, refusal;
  } cases[] = {
      {"", "recipe: r: expected JSON, found none at byte 1"},
      {" \n", "recipe: r: expected JSON, found none at byte 3"},
      {"{", "recipe: r, /: expected JSON, found none at byte 2"},
      {"{\"a\": [1, 2", "recipe: r, /a/2: expected JSON, found none at byte 12"},
      {"{\"a\": {\"b\": nul}}", "recipe: r, /a/b: expected JSON, found none at byte 16"},
      {"[1] 2", "recipe: r: expected JSON, found none at byte 5"},
      {"[1, // two\n2]", "recipe: r, /1: expected JSON, found none at byte 5"},
      {"[01]", "recipe: r, /1: expected JSON, found none at byte 3"},
      {"\"\xff\"", "recipe: r: expected JSON, found none at byte 2"},
      {"\"\xc0\xaf\"", "recipe: r: expected JSON, found none at byte 2"},
      {"\"\\ud800\"", "recipe: r: expected JSON, found none at byte 8"},
      {"\"a\nb\"", "recipe: r: expected JSON, found none at byte 3"},
      {"[NaN]", "recipe: r, /0: expected JSON, found none at byte 2"},
      {"{\"a\": 1e999}",
       "recipe: r, /a: expected numbers that a double can hold, found a larger one before byte 11"},
      {"{\"a\": {\"x\": 1, \"y\": 2, \"x\": 3}}",
       "recipe: r, /a/y: expected each name once, found 'x' again"},
      {"[{\"x\": 1}, {\"x\": 1, \"\\u0078\": 3}]",
       "recipe: r, /1/x: expected each name once, found 'x' again"},
  };
  for (const auto& [text, refusal] : cases) {
    EXPECT_EQ(Message(RecipeNode::Parse("r", text)), refusal) << text;
  }
}

TEST(RecipeNodeParse, TheSameNameInTwoObjectsIsNoRepetition) {
  Parsed(R"({"a": {"a": 1, "b": [{"a": 1}, {"a": 2}]}, "b": {"a": 3}, "c": [{"a": 1}]})");
}

TEST(RecipeNodeParse, NestingHasAnEndThatNoStackReaches) {
  EXPECT_TRUE(RecipeNode::Parse("r", Nested(32, "[", "]")).ok());
  EXPECT_TRUE(RecipeNode::Parse("r", Nested(32, "{\"a\":", "}")).ok());
  for (const size_t depth : {33u, 1000u, 3'000'000u}) {
    for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
      EXPECT_NE(Message(RecipeNode::Parse("r", Nested(depth, open, close)))
                    .find("expected at most 32 levels of nesting, found more"),
                std::string::npos);
    }
  }
}

TEST(RecipeNodeParse, ManyNamesTakeNoLongerThanTheirNumber) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  text += "\"k0\":0}";
  EXPECT_NE(Message(RecipeNode::Parse("r", text)).find("'k0' again"), std::string::npos);
}

TEST(RecipeNodeRead, FilesThatAreNoRecipes) {
  EXPECT_EQ(RecipeNode::Read(testing::TempDir() + "kinglet_no_such_recipe").status().code(),
            KINGLET_NOT_FOUND);
  EXPECT_FALSE(RecipeNode::Read(testing::TempDir()).ok());
  const TemporaryFile empty("");
  EXPECT_EQ(Message(RecipeNode::Read(empty.path())),
            "recipe: " + empty.path() + ": expected JSON, found none at byte 1");
  const TemporaryFile large("{}" + std::string(17 << 20, ' '));
  EXPECT_EQ(Message(RecipeNode::Read(large.path())),
            "recipe: " + large.path() + ": expected at most 16777216 bytes, found 17825794");
  const TemporaryFile marked("\xef\xbb\xbf{}");
  EXPECT_TRUE(RecipeNode::Read(marked.path()).ok());
}

TEST(RecipeNode, ValuesAreOfTheTypeThatIsAskedFor) {
  const RecipeNode node = Parsed(
      R"({"text": "x", "count": 18446744073709551615, "large": 18446744073709551616,
          "negative": -1, "real": 2.0, "truth": true, "none": null, "list": [5], "object": {}})");
  EXPECT_EQ(*node.Find("text")->Text(), "x");
  EXPECT_EQ(*node.Find("count")->Count(), UINT64_MAX);
  EXPECT_EQ(*node.Find("negative")->Number(), -1);
  EXPECT_EQ(*node.Find("large")->Number(), 18446744073709551616.0);
  EXPECT_TRUE(*node.Find("truth")->Truth());
  EXPECT_EQ(*node.Find("list")->Items()->at(0).Count(), 5u);
  EXPECT_EQ(node.Find("object")->Keys()->size(), 0u);
  EXPECT_FALSE(node.Find("other"));
  EXPECT_FALSE(node.Find("text")->Find("other"));

  EXPECT_EQ(Message(node.Find("negative")->Count()),
            "recipe: r, /negative: expected an integer from 0, found -1");
  EXPECT_EQ(Message(node.Find("real")->Count()),
            "recipe: r, /real: expected an integer from 0, found 2.0");
  EXPECT_EQ(Message(node.Find("large")->Count()),
            "recipe: r, /large: expected an integer from 0, found 1.8446744073709552e+19");
  EXPECT_EQ(Message(node.Find("none")->Text()), "recipe: r, /none: expected a text, found null");
  EXPECT_EQ(Message(node.Find("count")->Truth()),
            "recipe: r, /count: expected true or false, found 18446744073709551615");
  EXPECT_EQ(Message(node.Find("text")->Number()), "recipe: r, /text: expected a number, found 'x'");
  EXPECT_EQ(Message(node.Find("object")->Items()),
            "recipe: r, /object: expected an array, found an object");
  EXPECT_EQ(Message(node.Find("list")->Keys()),
            "recipe: r, /list: expected an object, found an array");
  EXPECT_EQ(Message(node.Get("other")), "recipe: r: expected \"other\", found none");
  EXPECT_EQ(Message(node.Find("list")->Get("other")),
            "recipe: r, /list: expected an object, found an array");
}

TEST(RecipeNode, KeysAndChoicesAreThoseThatAreKnown) {
  const RecipeNode node = Parsed(R"({"a": "two", "b\nb": {"c": [0, {"d": 1}]}})");
  constexpr std::array kNames = {"one"sv, "two"sv, "three"sv};
  EXPECT_EQ(*node.ChoiceOr("a", kNames, 2), 1u);
  EXPECT_EQ(*node.ChoiceOr("z", kNames, 2), 2u);
  EXPECT_EQ(*node.NumberOr("z", 2.5), 2.5);
  EXPECT_EQ(*node.CountOr("z", 7), 7u);
  EXPECT_TRUE(*node.TruthOr("z", true));
  EXPECT_TRUE(node.CheckKeys({"a", "b\nb", "c"}).ok());
  EXPECT_EQ(Message(node.CheckKeys({"a", "c"})),
            "recipe: r: expected only \"a\" or \"c\", found 'b\\x0ab'");
  const RecipeNode inner = *node.Find("b\nb");
  EXPECT_EQ(Message(inner.Choice(kNames)),
            "recipe: r, /'b\\x0ab': expected \"one\", \"two\" or \"three\", found an object");
  EXPECT_EQ(Message(inner.Find("c")->Items()->at(1).Find("d")->Text()),
            "recipe: r, /'b\\x0ab'/c/1/d: expected a text, found 1");
}

// Mutated recipes: parsing ends without a crash, and every message is one line.
TEST(RecipeNodeParse, BrokenTextsAreRefusedInOneLine) {
  const std::string sound = R"({"comment": "x", "sources": {"a": "b"},
    "embedding": {"scale": 2e1, "bins": [{"table": {"hashed": {"codebook": "t", "words": 9,
      "positions": 3, "seed": 1, "pools": [1, 2, 3]}}, "projection": {"tensor": "p", "rows": [0, 2],
      "transpose": true}}]}, "recurrent": {"cell": "gru", "torch": "rnn", "layers": 3},
    "softmax": {"head": {"table": "h"}, "clusters": {"weight": "c"}, "tails": [{"table": "t"}]},
    "cache": {"capacity": 5, "theta": 0.5, "lambda": 0.25}, "unused": ["*"],
    "passes": [{"pass": "code", "tensors": ["*"], "positions": 2, "sub_vectors": 8},
               {"pass": "low_rank", "tensors": ["x"], "rank": 3}]})";
  ASSERT_TRUE(ParseRecipe(Parsed(sound)).ok());
  const std::string pieces[] = {
      "{", "}", "[",   "]",    ",",    ":",        "\"",   "null",
      "0", "-", "1e9", "true", "\xff", "\"rows\"", "[[[[", "99999999999999999999"};
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = sound;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 20);
          break;
        case 1:
          text.insert(at, pieces[random() % std::size(pieces)]);
          break;
        case 2:
          text[at] = static_cast<char>(random());
          break;
        default:
          text.replace(at, 1 + random() % 5, pieces[random() % std::size(pieces)]);
      }
      if (text.empty()) text = " ";
    }
    const auto node = RecipeNode::Parse("r", text);
    const Status status = node.ok() ? ParseRecipe(*node).status() : node.status();
    if (status.ok()) continue;
    ++refused;
    ASSERT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    ASSERT_TRUE(status.message().starts_with("recipe: r")) << status.message();
  }
  EXPECT_GT(refused, 15'000);
}

}  // namespace
}  // namespace kinglet::recipe_node_test
