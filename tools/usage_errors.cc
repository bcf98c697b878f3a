#include "tools/usage_errors.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tools/arguments.h"
#include "tools/nearest_word.h"

namespace kinglet {
namespace {

// Separates the halves of a refused value's text, which CLI11 passes on.
constexpr char kSeparator = '\x1f';

struct Problem {
  std::string expected, found;
  std::string next;  // a sentence; empty: where to find all options
};

// The subcommand on the line, or the program itself.
const CLI::App& Chosen(const CLI::App& program) {
  const auto subcommands = program.get_subcommands();
  return subcommands.empty() ? program : *subcommands.front();
}

// The help's name of the value. The name of an operand is enough, unless it may be standard input.
std::string Placeholder(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return option.get_positional() && type != kFileOrStandardInput ? option.get_name() : type;
}

std::string NameOf(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true) : option.get_name();
}

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

std::string DidYouMean(const std::string& wrong, const std::vector<std::string>& known) {
  const std::string near = NearestWord(wrong, known);
  return near.empty() ? "" : "Did you mean " + near + "?";
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string LastOperand(const CLI::App& app) {
  std::string last;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) last = option->get_name();
  }
  return last;
}

// The subcommand that has an option which the line's subcommand lacks.
std::string OptionOfAnother(const CLI::App& program, const std::string& name) {
  for (const CLI::App* other : program.get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<std::string> names = OptionNames(*other);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    return name + " is an option of `" + program.get_name() + " " + other->get_name() + "`.";
  }
  return "";
}

// The first argument that no option or operand takes. Options are looked for first: what follows
// may be their value.
std::optional<Problem> SurplusArgument(const CLI::App& program) {
  const CLI::App& app = Chosen(program);
  const std::vector<std::string> extras = app.remaining(true);
  if (extras.empty()) return std::nullopt;
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& extra) { return extra.starts_with("-"); });
  if (option != extras.end()) {
    const std::string bare = option->substr(0, option->find('='));
    std::string next = OptionOfAnother(program, bare);
    if (next.empty()) next = DidYouMean(bare, OptionNames(app));
    return Problem{"one of its options", Quoted(bare), next};
  }
  const std::string last = LastOperand(app);
  return Problem{last.empty() ? "options only" : "nothing after " + last, Quoted(extras.front()),
                 ""};
}

std::optional<Problem> MissingOption(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return Problem{NameOf(*option) + " (" + option->get_description() + ")", "none", ""};
  }
  return std::nullopt;
}

// Options that exclude or need each other.
std::optional<Problem> ConflictingOptions(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    for (const CLI::Option* needed : option->get_needs()) {
      if (needed->count() > 0) continue;
      return Problem{needed->get_name() + " with " + option->get_name(), "only the second", ""};
    }
    for (const CLI::Option* excluded : option->get_excludes()) {
      if (excluded->count() == 0) continue;
      return Problem{option->get_name() + " or " + excluded->get_name(), "both", ""};
    }
  }
  return std::nullopt;
}

// An option without its value, or with several.
std::optional<Problem> WrongNumberOfValues(const CLI::App& app, const CLI::ParseError& error) {
  const auto* mismatch = dynamic_cast<const CLI::ArgumentMismatch*>(&error);
  if (mismatch == nullptr) return std::nullopt;
  const std::string text = mismatch->what();
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = NameOf(*option);
    if (!text.starts_with(name + ":")) continue;
    if (option->count() == 0) return Problem{"a value after " + name, "none", ""};
    return Problem{name + " once", std::to_string(option->count()) + " times", ""};
  }
  return std::nullopt;
}

// "0,5": a number as some countries write it.
bool HasDecimalComma(const std::string& text) {
  const size_t comma = text.find(',');
  const auto digit = [&](size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  return comma != text.npos && comma > 0 && digit(comma - 1) && digit(comma + 1);
}

// A value that a check refused: "--name: EXPECTED<separator>FOUND" in CLI11's words.
std::optional<Problem> RefusedText(const std::string& text) {
  const size_t colon = text.find(": ");
  const size_t separator = text.find(kSeparator);
  if (colon == text.npos || separator == text.npos || separator < colon) return std::nullopt;
  const std::string found = text.substr(separator + 1);
  return Problem{text.substr(0, colon) + " as " + text.substr(colon + 2, separator - colon - 2),
                 Quoted(found),
                 HasDecimalComma(found) ? "Write numbers with a decimal point, as in 0.5." : ""};
}

// CLI11's own message, for errors that the other functions do not know.
Problem OtherProblem(const CLI::ParseError& error) {
  std::string text = error.what();
  while (text.ends_with("\n") || text.ends_with(".")) text.pop_back();
  return Problem{"arguments as its help lists them", text, ""};
}

Status Refusal(const CLI::App& program, const Problem& problem) {
  const CLI::App& chosen = Chosen(program);
  const std::string next =
      problem.next.empty() ? "See `" + CommandText(program) + " --help`." : problem.next;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage",
                         &chosen == &program ? "command" : chosen.get_name(), problem.expected,
                         problem.found + ". " + next);
}

// Whether a value is a name, as no empty text is.
bool TakesName(const CLI::Option& option) {
  const std::string value = Placeholder(option);
  return NamesFile(option) || value == "NAME" || value == "NAMES" || value == "WORD" ||
         value == "PATTERNS";
}

}  // namespace

std::string RefusedValue(const std::string& expected, const std::string& found) {
  return expected + kSeparator + found;
}

std::string CommandText(const CLI::App& program) {
  const CLI::App& chosen = Chosen(program);
  return &chosen == &program ? program.get_name() : program.get_name() + " " + chosen.get_name();
}

bool NamesFile(const CLI::Option& option) {
  const std::string value = Placeholder(option);
  return value == kFileOrStandardInput || value == "FILE" || value == "FILES" ||
         value == "CHECKPOINT" || value == "TOKENIZER" || value == "FOLDER" ||
         value.ends_with(".kgl") || value.ends_with(".html") || value.ends_with(".json");
}

std::optional<Status> NameRefusal(const CLI::App& program) {
  bool is_used = false;
  for (const CLI::Option* option : Chosen(program).get_options()) {
    const std::string name = NameOf(*option);
    for (const std::string& value : option->results()) {
      if (TakesName(*option) && (value.empty() || value.front() == '\0')) {
        return Refusal(program, {"a name as " + name, "an empty text",
                                 "Is it a variable of the shell that is not set?"});
      }
      if (!NamesFile(*option) || value != "-") continue;
      if (Placeholder(*option) != kFileOrStandardInput) {
        return Refusal(program, {"a file's name as " + name, Quoted("-"),
                                 "Only values that the help names FILE|- can be standard input; a "
                                 "file named - is ./-."});
      }
      if (std::exchange(is_used, true)) {
        return Refusal(program, {"standard input once", "- a second time at " + name, ""});
      }
    }
  }
  return std::nullopt;
}

Status UsageRefusal(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& chosen = Chosen(program);
  std::optional<Problem> problem = RefusedText(error.what());
  if (!problem) problem = SurplusArgument(program);
  if (!problem) problem = MissingOption(chosen);
  if (!problem) problem = ConflictingOptions(chosen);
  if (!problem) problem = WrongNumberOfValues(chosen, error);
  return Refusal(program, problem ? *problem : OtherProblem(error));
}

}  // namespace kinglet
