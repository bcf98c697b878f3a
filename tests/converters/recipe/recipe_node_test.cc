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

// A message about a value without its line and column, which CountLinesAndColumns looks at.
template <class T>
std::string Bare(const T& result) {
  std::string message = Message(result);
  const size_t begin = message.find(", line ");
  EXPECT_NE(begin, std::string::npos) << message;
  const size_t end = message.find_first_of(",:", message.find("column "));
  return message.erase(begin, end - begin);
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
      {"", "line 1, column 1: expected JSON, found the end of the file"},
      {" \n", "line 2, column 1: expected JSON, found the end of the file"},
      {"{", "line 1, column 2, /: expected JSON, found the end of the file"},
      {"{\"a\": [1, 2", "line 1, column 12, /a/2: expected JSON, found the end of the file"},
      {"{\"a\": {\"b\": nul}}", "line 1, column 16, /a/b: expected JSON, found another character"},
      {"[1] 2", "line 1, column 5: expected JSON, found another character"},
      {"[1, // two\n2]", "line 1, column 5, /1: expected JSON, found another character"},
      {"[1,\n\n  01]", "line 3, column 4, /2: expected JSON, found another character"},
      {"\"\xff\"", "line 1, column 2: expected JSON, found another character"},
      {"\"\xc0\xaf\"", "line 1, column 2: expected JSON, found another character"},
      {"\"\\ud800\"", "line 1, column 8: expected JSON, found another character"},
      {"\"a\nb\"", "line 1, column 3: expected JSON, found another character"},
      {"[NaN]", "line 1, column 2, /0: expected JSON, found another character"},
      {"{\"a\": 1e999}",
       "line 1, column 11, /a: expected numbers that a double can hold, found a larger one, which "
       "ends here"},
      {"{\"a\": {\"x\": 1, \"y\": 2, \"x\": 3}}",
       "line 1, column 24, /a/x: expected each name once, found 'x' again"},
      {"[{\"x\": 1},\n {\"x\": 1,\n  \"\\u0078\": 3}]",
       "line 3, column 3, /1/x: expected each name once, found 'x' again"},
      {"{\"\\\"a\\\\\": 1, \"\\\"a\\\\\": 2}",
       "line 1, column 14, /\"a\\: expected each name once, found '\"a\\' again"},
  };
  for (const auto& [text, refusal] : cases) {
    EXPECT_EQ(Message(RecipeNode::Parse("r", text)), "recipe: r, " + std::string(refusal)) << text;
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
  EXPECT_EQ(
      Message(RecipeNode::Read(empty.path())),
      "recipe: " + empty.path() + ", line 1, column 1: expected JSON, found the end of the file");
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

  EXPECT_EQ(Bare(node.Find("negative")->Count()),
            "recipe: r, /negative: expected an integer from 0, found -1");
  EXPECT_EQ(Bare(node.Find("real")->Count()),
            "recipe: r, /real: expected an integer from 0, found 2.0");
  EXPECT_EQ(Bare(node.Find("large")->Count()),
            "recipe: r, /large: expected an integer from 0, found 1.8446744073709552e+19");
  EXPECT_EQ(Bare(node.Find("none")->Text()), "recipe: r, /none: expected a text, found null");
  EXPECT_EQ(Bare(node.Find("count")->Truth()),
            "recipe: r, /count: expected true or false, found 18446744073709551615");
  EXPECT_EQ(Bare(node.Find("text")->Number()), "recipe: r, /text: expected a number, found 'x'");
  EXPECT_EQ(Bare(node.Find("object")->Items()),
            "recipe: r, /object: expected an array, found an object");
  EXPECT_EQ(Bare(node.Find("list")->Keys()),
            "recipe: r, /list: expected an object, found an array");
  EXPECT_EQ(Bare(node.Get("other")), "recipe: r: expected \"other\", found none");
  EXPECT_EQ(Bare(node.Find("list")->Get("other")),
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
  EXPECT_EQ(Bare(node.CheckKeys({"a", "c"})),
            "recipe: r: expected a key \"a\" or \"c\", found 'b\\x0ab'");
  const RecipeNode inner = *node.Find("b\nb");
  EXPECT_EQ(Bare(inner.Choice(kNames)),
            "recipe: r, /'b\\x0ab': expected \"one\", \"two\" or \"three\", found an object");
  EXPECT_EQ(Bare(inner.Find("c")->Items()->at(1).Find("d")->Text()),
            "recipe: r, /'b\\x0ab'/c/1/d: expected a text, found 1");
}

TEST(RecipeNode, CountLinesAndColumns) {
  const RecipeNode node = Parsed(
      "\xef\xbb\xbf{\n  \"\xc3\xa9\": \"\xc3\xa9\\\"]}\", \"b\": [],\n"
      "\t\"c\" : {\"d\": [1.5e3 , {\"e\" :\r\n true}, null], \"f\": {}},\n"
      "  \"g\\\"\": -1}");
  const auto place = [](const Status& status) {
    const std::string message = status.message();
    const size_t begin = message.find("line "),
                 end = message.find_first_of(",:", message.find("column "));
    return message.substr(begin, end - begin);
  };
  EXPECT_EQ(place(node.Text().status()), "line 1, column 2");  // after the mark
  EXPECT_EQ(place(node.Find("\xc3\xa9")->Number().status()), "line 2, column 8");
  EXPECT_EQ(place(node.Find("b")->Number().status()), "line 2, column 22");
  const RecipeNode c = *node.Find("c");
  EXPECT_EQ(place(c.Number().status()), "line 3, column 8");
  const std::vector<RecipeNode> d = *c.Find("d")->Items();
  EXPECT_EQ(place(d[0].Text().status()), "line 3, column 15");
  EXPECT_EQ(place(d[1].Find("e")->Text().status()), "line 4, column 2");
  EXPECT_EQ(place(d[2].Text().status()), "line 4, column 9");
  EXPECT_EQ(place(c.Find("f")->Text().status()), "line 4, column 21");
  EXPECT_EQ(place(node.Find("g\"")->Text().status()), "line 5, column 10");
  // A refusal of an unknown name shows where the name begins.
  EXPECT_EQ(place(c.CheckKeys({"d"})), "line 4, column 16");
  EXPECT_EQ(place(node.Get("h").status()), "line 1, column 2");
}

TEST(RecipeNode, DefaultsKeepTheirPlaces) {
  const RecipeNode node = Parsed(R"({"all": {"a": 1, "b": 2}, "one": {"a": "x"}})");
  const RecipeNode one = node.Find("one")->WithDefaults(*node.Find("all"));
  EXPECT_EQ(*one.TextAt("a"), "x");
  EXPECT_EQ(*one.CountAt("b"), 2u);
  EXPECT_FALSE(one.Find("c"));
  EXPECT_EQ(*one.Keys(), std::vector<std::string>{"a"});
  EXPECT_EQ(Bare(one.TextAt("b")), "recipe: r, /all/b: expected a text, found 2");
}

TEST(RecipeNode, AMissingChoiceListsWhatItMayBe) {
  const RecipeNode node = Parsed(R"({"a": "two"})");
  constexpr std::array kNames = {"one"sv, "two"sv};
  EXPECT_EQ(*node.ChoiceAt("a", kNames), 1u);
  EXPECT_EQ(Bare(node.ChoiceAt("b", kNames)),
            R"(recipe: r: expected "b": "one" or "two", found none)");
}

// Mutated recipes: parsing ends without a crash, and every message is one line.
TEST(RecipeNodeParse, BrokenTextsAreRefusedInOneLine) {
  const std::string sound = R"({"comment": "x", "sources": {"a": "b"},
    "embedding": {"scale": 2e1, "bins": [{"table": {"hashed": {"codebook": "t", "words": 9,
      "positions": 3, "seed": 1, "combine": "sum", "pools": [1, 2, 3]}},
      "projection": {"tensor": "p", "rows": [0, 2],
      "transpose": true}}]}, "recurrent": {"cell": "gru", "torch": "rnn", "layers": 3},
    "softmax": {"head": {"table": "h"}, "clusters": {"weight": "c", "order": "forward"},
    "tails": [{"table": "t"}]},
    "cache": {"capacity": 5, "theta": 0.5, "lambda": 0.25, "start": "first_pair"},
    "unused": ["*"],
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
