#include "tools/arguments.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <vector>

namespace kinglet::arguments_test {
namespace {

struct Values {
  std::string model, kind = "plain";
  std::optional<uint32_t> block;
  uint64_t context = 0;
  double fraction = 0.5;
  bool json = false;
};

struct Outcome {
  Values values;
  Result<std::optional<std::string>> text;
  bool scored;
};

Outcome Parse(std::vector<const char*> line) {
  Values values;
  ArgumentParser program("A program.", "program");
  program.RequireSubcommand();
  program.AddVersion([] { return std::string("program 1.2"); });
  Arguments score = program.AddSubcommand("score", "Scores.");
  score.Add("M.kgl", values.model, "the model").Required().Placeholder("");
  const Option block =
      score.Add("--block", values.block, "tokens").Between(1u, 64u).Placeholder("N");
  score.Add("--context", values.context, "tokens").Needs(block).Placeholder("C").ShowDefault();
  const Option json = score.AddFlag("--json", values.json, "lines");
  score.Add("-k,--kind", values.kind, "sort").OneOf({"plain", "coded"}).Excludes(json);
  score.Add("--fraction", values.fraction, "share").NonNegative();
  score.Get("--kind").Help("another help");
  score.Footer("Example:\n  program score m");
  line.insert(line.begin(), "program");
  auto text = program.Parse(static_cast<int>(line.size()), line.data());
  return {values, std::move(text), score.parsed()};
}

TEST(ArgumentsTest, FillsTheVariables) {
  const Outcome outcome = Parse(
      {"score", "m.kgl", "--block", "64", "--context", "3", "-k", "coded", "--fraction", "2"});
  ASSERT_TRUE(outcome.text.ok()) << outcome.text.status().message();
  EXPECT_FALSE(outcome.text->has_value());
  EXPECT_TRUE(outcome.scored);
  EXPECT_EQ(outcome.values.model, "m.kgl");
  EXPECT_EQ(outcome.values.block, 64u);
  EXPECT_EQ(outcome.values.context, 3u);
  EXPECT_EQ(outcome.values.kind, "coded");
  EXPECT_EQ(outcome.values.fraction, 2.0);
  EXPECT_FALSE(outcome.values.json);
}

TEST(ArgumentsTest, WhatIsNotOnTheLineKeepsItsValue) {
  const Outcome outcome = Parse({"score", "m.kgl", "--json"});
  ASSERT_TRUE(outcome.text.ok());
  EXPECT_EQ(outcome.values.block, std::nullopt);
  EXPECT_EQ(outcome.values.kind, "plain");
  EXPECT_TRUE(outcome.values.json);
}

TEST(ArgumentsTest, HelpAndVersionAreTexts) {
  const Outcome help = Parse({"score", "--help"});
  ASSERT_TRUE(help.text.ok());
  ASSERT_TRUE(help.text->has_value());
  for (const char* part :
       {"Scores.", "--block N", "--context C", "another help", "Example:\n  program score m"}) {
    EXPECT_NE((*help.text)->find(part), std::string::npos) << part << " in " << **help.text;
  }
  const Outcome version = Parse({"--version"});
  ASSERT_TRUE(version.text.ok());
  EXPECT_EQ(version.text->value_or(""), "program 1.2");
}

TEST(ArgumentsTest, AWrongLineIsOneRefusal) {
  const std::vector<std::vector<const char*>> lines = {
      {},
      {"unheard"},
      {"score"},
      {"score", "m", "--block", "0"},
      {"score", "m", "--block", "65"},
      {"score", "m", "--block", "x"},
      {"score", "m", "--block"},
      {"score", "m", "--context", "3"},
      {"score", "m", "--kind", "odd"},
      {"score", "m", "--kind", "plain", "--json"},
      {"score", "m", "--fraction", "-0.5"},
      {"score", "m", "--unheard"},
      {"score", "m", "n"},
  };
  for (const auto& line : lines) {
    const Outcome outcome = Parse(line);
    ASSERT_FALSE(outcome.text.ok());
    EXPECT_EQ(outcome.text.status().code(), KINGLET_INVALID_ARGUMENT);
    EXPECT_EQ(outcome.text.status().message().find("usage: "), 0u);
    EXPECT_EQ(outcome.text.status().message().find('\n'), std::string::npos);
  }
}

std::string Refusal(const std::vector<const char*>& line) {
  return Parse(line).text.status().message();
}

TEST(ArgumentsTest, ARefusalSaysWhatWasExpectedAndFoundAndTheNextStep) {
  EXPECT_EQ(Refusal({"score", "m", "--block", "65"}),
            "usage: score: expected --block as a whole number from 1 to 64, found \"65\". See "
            "`program score --help`.");
  EXPECT_EQ(Refusal({"score", "m", "--block", "5", "--context", "18446744073709551616"}),
            "usage: score: expected --context as a whole number up to 18446744073709551615, found "
            "\"18446744073709551616\". See `program score --help`.");
  EXPECT_EQ(Refusal({"score", "m", "--fraction", "0,5"}),
            "usage: score: expected --fraction as a number of at least 0, found \"0,5\". Write "
            "numbers with a decimal point, as in 0.5.");
  EXPECT_EQ(Refusal({"score", "m", "--kind", "odd"}),
            "usage: score: expected --kind as plain or coded, found \"odd\". See "
            "`program score --help`.");
  EXPECT_EQ(Refusal({"score", "m", "--blok", "3"}),
            "usage: score: expected one of its options, found \"--blok\". Did you mean --block?");
  EXPECT_EQ(Refusal({"score", "m", "--context", "3"}),
            "usage: score: expected --block with --context, found only the second. See "
            "`program score --help`.");
  EXPECT_EQ(Refusal({"score"}),
            "usage: score: expected M.kgl (the model), found none. See `program score --help`.");
}

// CLI11 parses lists in brackets, "{}" as no value, "%%" as a separator, "++" as the end of a
// subcommand, and the next word where a value is empty.
TEST(ArgumentsTest, WordsAreWhatTheySay) {
  ArgumentParser program("A program.", "program");
  program.RequireSubcommand();
  Arguments run = program.AddSubcommand("run", "Runs.");
  std::vector<std::string> files, more;
  std::string name;
  std::optional<std::string> text;
  run.Add("FILES", files, "files").Placeholder("");
  run.Add("--more", more, "more files").Placeholder("FILES");
  run.Add("-n,--name", name, "a name");
  run.Add("--text", text, "a text");
  const char* line[] = {"program", "run",          "[a,b]", "{}",      "%%",     "++",
                        "[]",      "@f",           "run",   "[a",      "a]",     "",
                        "-",       "--more=[c,d]", "e",     "--name=", "--text", "[x]"};
  const auto parsed = program.Parse(static_cast<int>(std::size(line)), line);
  // "-" cannot be a file here.
  EXPECT_FALSE(parsed.ok());
  using Words = std::vector<std::string>;
  EXPECT_EQ(files, (Words{"[a,b]", "{}", "%%", "++", "[]", "@f", "run", "[a", "a]", "", "-"}));
  EXPECT_EQ(more, (Words{"[c,d]", "e"}));
  EXPECT_EQ(name, "");
  EXPECT_EQ(text, "[x]");
}

// As of a shell's variable that is not set.
TEST(ArgumentsTest, EmptyNamesAreRefused) {
  const auto parse = [](std::vector<const char*> words) {
    ArgumentParser program("A program.", "program");
    std::string file, name, text, input;
    program.Add("--file", file, "a file").Placeholder("FILE");
    program.Add("--name", name, "a name").Placeholder("NAME");
    program.Add("--text", text, "a text");
    program.Add("INPUT", input, "an input").Placeholder(kFileOrStandardInput);
    words.insert(words.begin(), "program");
    const auto parsed = program.Parse(static_cast<int>(words.size()), words.data());
    return parsed.ok() ? "parsed" : parsed.status().message();
  };
  EXPECT_EQ(parse({"--file", ""}),
            "usage: command: expected a name as --file, found an empty text. Is it a variable of "
            "the shell that is not set?");
  EXPECT_EQ(parse({"--file="}), parse({"--file", ""}));
  EXPECT_NE(parse({"--name", ""}), "parsed");
  EXPECT_NE(parse({""}), "parsed");
  EXPECT_EQ(parse({"--text", "", "--name", "a"}), "parsed");
}

// A text that is not a number, and values at and beyond the limits of the type.
TEST(ArgumentsTest, NumbersAreReadWhole) {
  for (const char* text : {"", "1x", "1.5", "-1", "4294967296", "nan", "0,5"}) {
    EXPECT_FALSE(Parse({"score", "m", "--block", text}).text.ok()) << text;
  }
  for (const char* text : {"nan", "x", "1..2", "-0.1"}) {
    EXPECT_FALSE(Parse({"score", "m", "--fraction", text}).text.ok()) << text;
  }
  EXPECT_EQ(
      Parse({"score", "m", "--block", "1", "--context", "18446744073709551615"}).values.context,
      18446744073709551615u);
}

TEST(ArgumentsTest, NoNumberIsNan) {
  for (const char* text : {"nan", "-nan", "NaN", "nan(1)"}) {
    ArgumentParser program("A program.", "program");
    std::optional<double> limit;
    double weight = 0;
    program.Add("--limit", limit, "a limit");
    program.Add("--weight", weight, "a weight");
    for (const char* option : {"--limit", "--weight"}) {
      const char* line[] = {"program", option, text};
      EXPECT_FALSE(program.Parse(3, line).ok()) << option << text;
    }
  }
}

TEST(ArgumentsTest, FactsAreThoseOfTheHelp) {
  double value = 0.5;
  std::string path;
  ArgumentParser program("About.", "program");
  program.Add("M.kgl", path, "the model").Required().Placeholder("");
  program.Add("-v,--value", value, "a value").Placeholder("X").ShowDefault();
  program.Add("--text", path, "a text").Placeholder(kFileOrStandardInput);
  program.Add("--kind", path, "a kind").OneOf({"a", "b"});
  const ArgumentFacts facts = program.Facts();
  ASSERT_EQ(facts.operands.size(), 1u);
  EXPECT_TRUE(facts.operands[0].file && facts.operands[0].required);
  ASSERT_EQ(facts.options.size(), 4u);  // with --help
  EXPECT_EQ(facts.options[1].names, (std::vector<std::string>{"-v", "--value"}));
  EXPECT_EQ(facts.options[1].value, "X");
  EXPECT_EQ(facts.options[1].start, "0.5");
  EXPECT_TRUE(facts.options[2].file);
  EXPECT_EQ(facts.options[3].value, "a|b");
  EXPECT_FALSE(facts.options[3].file);
}

}  // namespace
}  // namespace kinglet::arguments_test
