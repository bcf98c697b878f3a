// The tables of options of every family: the code follows them, and docs/OPTIONS.md documents
// them.
#include "converters/families/known_options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "converters/families/families.h"
#include "converters/name_pattern.h"

namespace kinglet::known_options_test {
namespace {

constexpr FixedOption kFixed[] = {
    {"norm", "'first'|'last'"}, {"copies", "0"}, {"config", ""}, {"arch", "'small*'|'tiny'", true}};
constexpr OptionTable kTable = {"the test", "width depth", kFixed, "lr* *_dropout seed", "words"};

Status Check(const std::vector<StatedOption>& stated, IgnoredOptions* ignored = nullptr) {
  return CheckOptions(kTable, "checkpoint", "args.", stated, ignored);
}

void ExpectRefused(const Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(status.message(), message);
}

TEST(KnownOptions, Names) {
  EXPECT_EQ(OptionNames(" a  bc* d "), (std::vector<std::string_view>{"a", "bc*", "d"}));
  EXPECT_TRUE(OptionNames("").empty());
}

TEST(KnownOptions, WhatIsKnownPasses) {
  EXPECT_TRUE(Check({}).ok());
  EXPECT_TRUE(Check({{"width", "'anything'"}, {"words", "3"}, {"lr_shrink", "0.1"}}).ok());
  EXPECT_TRUE(
      Check({{"norm", "'last'"}, {"norm", "None"}, {"copies", "0"}, {"config", "None"}}).ok());
  EXPECT_TRUE(Check({{"arch", "'small'"}, {"arch", "'small_x'"}, {"arch", "'tiny'"}}).ok());
}

TEST(KnownOptions, AnotherNetworkIsRefusedByName) {
  ExpectRefused(Check({{"width", "3"}, {"norm", "'both'"}}),
                "checkpoint: args.norm: expected 'first' or 'last', found 'both'");
  ExpectRefused(Check({{"copies", "1"}}), "checkpoint: args.copies: expected 0, found 1");
  ExpectRefused(Check({{"config", "'x'"}}), "checkpoint: args.config: expected None, found 'x'");
  for (const char* value : {"'smal'", "'tiny_x'", "small", "3", "''"}) {
    EXPECT_FALSE(Check({{"arch", value}}).ok()) << value;
  }
  ExpectRefused(Check({{"arch", "'mine'"}}),
                "checkpoint: args.arch: expected 'small*' or 'tiny', found 'mine' (another name of "
                "such a network: --ignore-option arch)");
}

TEST(KnownOptions, UnknownOnesAreRefusedTogether) {
  ExpectRefused(Check({{"foo", "3"}}),
                "checkpoint: args.foo: expected an option that kinglet knows, found 'foo' = 3 "
                "(--ignore-option 'foo' if the network's output does not depend on it)");
  ExpectRefused(
      Check({{"foo", "3"}, {"width", "1"}, {"b ar", "'x'"}}),
      "checkpoint: args.foo: expected an option that kinglet knows, found 'foo' = 3 and 1 "
      "more (--ignore-option 'foo' 'b ar' if the network's output does not depend on them)");
}

TEST(KnownOptions, TheUserIgnoresWhatIsUnknownAndNothingElse) {
  IgnoredOptions ignored{{"foo", "arch"}};
  EXPECT_TRUE(Check({{"foo", "3"}, {"arch", "'mine'"}}, &ignored).ok());
  EXPECT_TRUE(CheckAllMet(ignored).ok());
  IgnoredOptions known{{"norm", "seed"}};
  EXPECT_FALSE(Check({{"norm", "'both'"}, {"seed", "1"}}, &known).ok());
  EXPECT_EQ(CheckAllMet(known).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(
      CheckAllMet({{"seed"}}).message(),
      "convert: ignore-option: expected options of the checkpoint that kinglet does not know, "
      "found 'seed' (remove it from --ignore-option)");
  EXPECT_TRUE(CheckAllMet({}).ok());
}

std::vector<std::pair<std::string, OptionTable>> AllTables() {
  std::vector<std::pair<std::string, OptionTable>> tables;
  for (const Family* family : Families()) {
    if (family->options == nullptr) continue;
    for (const OptionTable& table : family->options()) tables.emplace_back(family->name, table);
  }
  for (const PickledClass& each : TorchClasses()) {
    const bool again = tables.back().second.holds == each.attributes.holds;
    if (!again) tables.emplace_back("torch.nn", each.attributes);
  }
  return tables;
}

// A name that fits the pattern.
std::string Instance(std::string_view pattern) {
  std::string name(pattern);
  const size_t star = name.find('*');
  return star == name.npos ? name : name.replace(star, 1, "x");
}

TEST(OptionTables, ClassifyEachNameOnce) {
  for (const auto& of_family : AllTables()) {
    const auto& family = of_family.first;
    const auto& table = of_family.second;
    std::set<std::string> names;
    const auto ignored = OptionNames(table.ignored);
    const auto add = [&](std::string_view name) {
      EXPECT_TRUE(names.emplace(name).second) << family << ": " << name;
      EXPECT_EQ(name.find('*'), name.npos) << family << ": " << name;
      for (const std::string_view pattern : ignored) {
        EXPECT_FALSE(MatchesPattern(pattern, name)) << family << ": " << name << ", " << pattern;
      }
    };
    for (const std::string_view name : OptionNames(table.honoured)) add(name);
    for (const std::string_view name : OptionNames(table.by_tensors)) add(name);
    for (const FixedOption& option : table.fixed) add(option.name);
    for (size_t i = 0; i < ignored.size(); ++i) {
      EXPECT_NE(ignored[i], "*") << family;
      for (size_t j = 0; j < ignored.size(); ++j) {
        EXPECT_TRUE(i == j || !MatchesPattern(ignored[j], ignored[i]))
            << family << ": " << ignored[i];
      }
    }
  }
}

// Each option of each table, flipped. What honoured options do is tested with each family.
TEST(OptionTables, RefuseByNameAndIgnoreByList) {
  for (const auto& [family, table] : AllTables()) {
    const auto check = [&, &options = table](const std::string& name, const std::string& value) {
      const StatedOption stated[] = {{name, value}};
      return CheckOptions(options, "checkpoint", "args.", stated, nullptr);
    };
    for (const FixedOption& option : table.fixed) {
      const std::string name(option.name);
      const auto never_none = OptionNames(table.never_none);
      const bool needed =
          std::find(never_none.begin(), never_none.end(), option.name) != never_none.end();
      EXPECT_EQ(check(name, "None").ok(), !needed) << family << ": " << name;
      std::istringstream values{std::string(option.values)};
      for (std::string value; std::getline(values, value, '|');) {
        if (value.ends_with("*'")) value.replace(value.size() - 2, 1, "x");
        EXPECT_TRUE(check(name, value).ok()) << family << ": " << name << " " << value;
      }
      const Status refused = check(name, "'something else'");
      EXPECT_EQ(refused.code(), KINGLET_UNSUPPORTED) << family << ": " << name;
      EXPECT_TRUE(refused.message().starts_with("checkpoint: args." + name + ": expected "))
          << refused.message();
    }
    for (const std::string_view each : OptionNames(table.ignored)) {
      EXPECT_TRUE(check(Instance(each), "'something else'").ok()) << family << ": " << each;
    }
    const Status invented = check("hyper_gate", "2");
    EXPECT_EQ(invented.code(), KINGLET_UNSUPPORTED) << family;
    EXPECT_TRUE(
        invented.message().starts_with("checkpoint: args.hyper_gate: expected an option that "
                                       "kinglet knows, found 'hyper_gate' = 2"))
        << invented.message();
  }
}

// Words that fill lines of a page.
class Filled {
 public:
  explicit Filled(const std::string& first) : line_(first) {}
  void Add(const std::string& word) {
    constexpr size_t kColumns = 120;
    if (line_.size() + 1 + word.size() > kColumns) {
      text_ += line_ + "\n";
      line_ = " ";
    }
    line_ += " " + word;
  }
  std::string Text() const { return text_ + line_ + "\n"; }

 private:
  std::string text_, line_;
};

std::string Listed(const std::string& first, const std::vector<std::string>& words) {
  if (words.empty()) return "";
  Filled filled(first);
  for (size_t i = 0; i < words.size(); ++i) {
    filled.Add(words[i] + (i + 1 < words.size() ? "," : "."));
  }
  return filled.Text();
}

std::vector<std::string> Quoted(std::string_view names) {
  std::vector<std::string> quoted;
  for (const std::string_view name : OptionNames(names)) {
    quoted.push_back("`" + std::string(name) + "`");
  }
  return quoted;
}

std::string PageText() {
  std::string text;
  for (const auto& [family, table] : AllTables()) {
    const std::string before = text;
    text += "## " + family + ": " + std::string(table.holds) + "\n\n";
    const size_t heading = text.size();
    text += Listed("* **Honoured:**", Quoted(table.honoured));
    text += Listed("* **Told by the tensors:**", Quoted(table.by_tensors));
    std::vector<std::string> fixed;
    for (const FixedOption& option : table.fixed) {
      std::string values(option.values.empty() ? "None" : option.values);
      for (size_t at = 0; (at = values.find('|', at)) != values.npos; at += 4) {
        values.replace(at, 1, " or ");
      }
      fixed.push_back("`" + std::string(option.name) + "` " + values);
    }
    text += Listed("* **Refused with another value than:**", fixed);
    text += Listed("* **Refused when None:**", Quoted(table.never_none));
    text += Listed("* **Ignored:**", Quoted(table.ignored)) + "\n";
    if (text.size() == heading + 1) text = before;  // a class without attributes of its own
  }
  return text;
}

// With KINGLET_WRITE_OPTIONS the test writes the page.
TEST(OptionTables, AreThoseOfThePage) {
  const std::string path = KINGLET_TEST_DATA "/../../docs/OPTIONS.md";
  const std::string begin = "<!-- The test known_options compares what follows. -->\n\n";
  const std::string end = "<!-- End of the options. -->\n";
  std::ostringstream bytes;
  bytes << std::ifstream(path).rdbuf();
  std::string page = bytes.str();
  const size_t first = page.find(begin), last = page.find(end);
  ASSERT_TRUE(first != page.npos && last != page.npos && first < last);
  const size_t start = first + begin.size();
  const std::string expected = PageText();
  if (std::getenv("KINGLET_WRITE_OPTIONS") != nullptr) {
    std::ofstream(path) << page.replace(start, last - start, expected);
    return;
  }
  EXPECT_EQ(page.substr(start, last - start), expected)
      << "KINGLET_WRITE_OPTIONS=1 with this test writes the page";
}

}  // namespace
}  // namespace kinglet::known_options_test
