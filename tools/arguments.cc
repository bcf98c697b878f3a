#include "tools/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <utility>

#include "tools/usage_errors.h"

namespace kinglet {
namespace {

// The check that every option of a number has.
constexpr const char* kNumberCheck = "number";

// Shortest text that names the number, as people write it.
template <class T>
std::string NumberText(T number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

template <class T>
std::string KindOf() {
  return std::is_integral_v<T> ? "a whole number" : "a number";
}

// Reads a number as CLI11 will. Whole numbers are accepted in the plain form alone: CLI11 would
// read -1 and 2^64 as other numbers, and 010 as 8.
template <class T>
bool ReadNumber(const std::string& text, T& value) {
  if (!CLI::detail::lexical_cast(text, value)) return false;
  if constexpr (std::is_integral_v<T>) {
    T plain{};
    const char* const end = text.data() + text.size();
    const std::from_chars_result read = std::from_chars(text.data(), end, plain);
    return read.ec == std::errc() && read.ptr == end && plain == value;
  } else {
    return !std::isnan(value);  // which no bound would refuse
  }
}

// The range to add to "expected" if the text is a whole number that its type cannot hold; otherwise
// "".
template <class T>
std::string LimitOf(const std::string& text) {
  if constexpr (std::is_integral_v<T>) {
    T value{};
    const std::from_chars_result read =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc::result_out_of_range && text.front() != '-') {
      return " up to " + NumberText(std::numeric_limits<T>::max());
    }
  }
  return "";
}

// Arguments that CLI11 would not take as plain text: a list in brackets, an option whose value is
// empty, an end of a subcommand. An appended zero byte, which no argument can contain, keeps them
// unchanged until their variable is set.
constexpr char kWhole = '\0';

std::string Guarded(std::string word) {
  const bool has_no_value = word.starts_with("--") && word.ends_with('=');
  if (word.ends_with(']') || has_no_value || word == "++") word += kWhole;
  return word;
}

std::string Unguarded(std::string word) {
  if (word.ends_with(kWhole)) word.pop_back();
  return word;
}

// Texts become the variable's value unchanged: CLI11's own conversion gives some texts a meaning
// ("{}" is no file, "%%" separates).
void SetTexts(const CLI::results_t& words, std::string& value) { value = Unguarded(words.back()); }
void SetTexts(const CLI::results_t& words, std::optional<std::string>& value) {
  value = Unguarded(words.back());
}
void SetTexts(const CLI::results_t& words, std::vector<std::string>& value) {
  value.clear();
  for (const std::string& word : words) value.push_back(Unguarded(word));
}

std::string DefaultText(const std::string& value) { return value; }
std::string DefaultText(const std::optional<std::string>& value) { return value.value_or(""); }
std::string DefaultText(const std::vector<std::string>& value) {
  return CLI::detail::join(value, " ");
}

// `text` with line ends for spaces, so that lines have at most `columns` columns where words allow
// it. An indented line is an example and stays.
std::string Folded(const std::string& text, size_t columns) {
  std::string out;
  size_t line = 0;  // where the line begins in `out`
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at + 1), text.size());
    const std::string word = text.substr(at, end - at);  // with the space before it
    const bool is_example = out.compare(line, 1, " ") == 0;
    if (word[0] == ' ' && out.size() > line && !is_example &&
        out.size() - line + word.size() > columns) {
      out += "\n" + word.substr(1);
      line = out.size() - word.size() + 1;
    } else {
      out += word;
      if (word[0] == '\n') line = out.size() - word.size() + 1;
    }
    at = end;
  }
  return out;
}

// Help whose lines fit a terminal.
class FoldedHelp : public CLI::Formatter {
 public:
  explicit FoldedHelp(size_t columns) : columns_(columns) {}
  std::string make_option_desc(const CLI::Option* option) const override {
    return Folded(option->get_description(), columns_ - get_column_width());
  }
  std::string make_description(const CLI::App* app) const override {
    return Folded(app->get_description(), columns_) + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    return Folded(app->get_footer(), columns_) + "\n";
  }
  std::string make_subcommand(const CLI::App* app) const override {
    std::stringstream out;
    constexpr size_t kNameColumns = 14;
    CLI::detail::format_help(out, app->get_name(),
                             Folded(app->get_description(), columns_ - kNameColumns), kNameColumns);
    return out.str();
  }

 private:
  size_t columns_;
};

// The descriptions of checks are empty: CLI11 would add them to the value's placeholder in the
// help.
template <class T, class Accepts>
std::function<std::string(std::string&)> NumberCheck(const std::string& expected, Accepts accepts,
                                                     bool says_most = false) {
  return [expected, accepts, says_most](const std::string& text) {
    T value{};
    if (ReadNumber(text, value) && accepts(value)) return std::string();
    return RefusedValue(expected + (says_most ? "" : LimitOf<T>(text)), text);
  };
}

// The type of a variable's value.
template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};

// "a", "a or b", "a, b or c".
std::string Listed(const std::vector<std::string>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += i + 1 == values.size() ? " or " : ", ";
    text += values[i];
  }
  return text;
}

}  // namespace

Option& Option::Required(bool required) {
  option_->required(required);
  return *this;
}

Option& Option::Placeholder(const std::string& value) {
  option_->type_name(value);
  return *this;
}

Option& Option::OneValueEach() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

template <class T>
Option& Option::Between(T least, T most) {
  const bool says_most = most != std::numeric_limits<T>::max();
  const std::string range = says_most ? " from " + NumberText(least) + " to " + NumberText(most)
                                      : " of at least " + NumberText(least);
  const auto is_between = [=](T value) { return value >= least && value <= most; };
  option_->get_validator(kNumberCheck)
      ->operation(NumberCheck<T>(KindOf<T>() + range, is_between, says_most));
  return *this;
}
template Option& Option::Between(int, int);
template Option& Option::Between(uint32_t, uint32_t);
template Option& Option::Between(unsigned long, unsigned long);  // uint64_t and size_t
template Option& Option::Between(unsigned long long, unsigned long long);
template Option& Option::Between(double, double);

Option& Option::NonNegative() {
  option_->get_validator(kNumberCheck)
      ->operation(
          NumberCheck<double>("a number of at least 0", [](double value) { return value >= 0; }));
  return *this;
}

Option& Option::OneOf(std::vector<std::string> values) {
  std::string placeholder;
  for (const std::string& value : values) placeholder += (placeholder.empty() ? "" : "|") + value;
  option_->type_name(placeholder);
  option_->check(CLI::Validator(
      [values = std::move(values)](const std::string& text) {
        const bool known = std::find(values.begin(), values.end(), text) != values.end();
        return known ? std::string() : RefusedValue(Listed(values), text);
      },
      ""));
  return *this;
}

Option& Option::Needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::Excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::Help(const std::string& help) {
  option_->description(help);
  return *this;
}

template <class T>
Option Arguments::Add(const std::string& name, T& value, const std::string& help) {
  using Value = typename ValueOf<T>::Type;
  if constexpr (std::is_arithmetic_v<Value>) {
    CLI::Option* option = app_->add_option(name, value, help);
    option->check(CLI::Validator(NumberCheck<Value>(KindOf<Value>(), [](Value) { return true; }),
                                 "", kNumberCheck));
    return Option(option);
  } else {
    CLI::Option* option = app_->add_option(
        name,
        [&value](const CLI::results_t& words) {
          SetTexts(words, value);
          return true;
        },
        help, false, [&value] { return DefaultText(value); });
    option->type_name("TEXT")->type_size(1);
    const bool several = std::is_same_v<Value, std::vector<std::string>>;
    option->expected(several ? CLI::detail::expected_max_vector_size : 1);
    return Option(option);
  }
}
template Option Arguments::Add(const std::string&, std::string&, const std::string&);
template Option Arguments::Add(const std::string&, int&, const std::string&);
template Option Arguments::Add(const std::string&, uint32_t&, const std::string&);
template Option Arguments::Add(const std::string&, unsigned long&, const std::string&);
template Option Arguments::Add(const std::string&, unsigned long long&, const std::string&);
template Option Arguments::Add(const std::string&, double&, const std::string&);
template Option Arguments::Add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<int>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<uint32_t>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<uint64_t>&, const std::string&);
template Option Arguments::Add(const std::string&, std::optional<double>&, const std::string&);

Option Arguments::AddFlag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

Option Arguments::Get(const std::string& name) {
  // The library's own search allocates memory where it may not throw.
  for (CLI::Option* option : app_->get_options()) {
    if (option->check_name(name)) return Option(option);
  }
  throw CLI::OptionNotFound(name);
}

void Arguments::Footer(const std::string& text) { app_->footer(text); }

Arguments Arguments::AddSubcommand(const std::string& name, const std::string& about) {
  return Arguments(app_->add_subcommand(name, about));
}

void Arguments::RequireSubcommand() { app_->require_subcommand(1); }

void Arguments::Group(const std::string& title) { app_->group(title); }

std::string Arguments::name() const { return app_->get_name(); }

ArgumentFacts Arguments::Facts() const {
  ArgumentFacts facts{app_->get_name(), app_->get_description(), app_->get_footer(), {}, {}};
  for (const CLI::Option* option : app_->get_options()) {
    ArgumentFacts::Item item;
    item.about = option->get_description();
    item.required = option->get_required();
    item.file = NamesFile(*option);
    item.several = option->get_items_expected_max() > 1;
    if (option->get_positional()) {
      item.names = {option->get_name()};
      facts.operands.push_back(item);
      continue;
    }
    for (const std::string& name : option->get_snames()) item.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) item.names.push_back("--" + name);
    if (option->get_items_expected_max() > 0) item.value = option->get_type_name();
    item.start = option->get_default_str();
    facts.options.push_back(item);
  }
  return facts;
}

bool Arguments::parsed() const { return app_->parsed(); }

ArgumentParser::ArgumentParser(const std::string& about, const std::string& name)
    : Arguments(nullptr), owned_(std::make_unique<CLI::App>(about, name)) {
  owned_->allow_windows_style_options(false);  // /text is a path everywhere
  app_ = owned_.get();
  FoldHelp(80);
}

ArgumentParser::~ArgumentParser() = default;

void ArgumentParser::FoldHelp(size_t columns) {
  const auto help = std::make_shared<FoldedHelp>(columns);
  app_->formatter(help);
  for (CLI::App* command : app_->get_subcommands({})) command->formatter(help);
}

void ArgumentParser::AddVersion(std::function<std::string()> text) {
  app_->set_version_flag("--version", std::move(text),
                         "Print the version and the backends and exit");
}

Result<std::optional<std::string>> ArgumentParser::Parse(int argc, const char* const* argv) {
  try {
    std::vector<std::string> words;  // the last one first, as CLI11 has them
    for (int i = argc; i-- > 1;) words.push_back(Guarded(argv[i]));
    app_->parse(std::move(words));
    if (const std::optional<Status> refusal = NameRefusal(*app_)) return *refusal;
    return std::optional<std::string>();
  } catch (const CLI::CallForVersion& version) {
    return std::optional<std::string>(version.what());
  } catch (const CLI::Success&) {  // --help
    return std::optional<std::string>(app_->help());
  } catch (const CLI::ParseError& error) {
    const Status refusal = UsageRefusal(*app_, error);
    std::string text = refusal.message();
    std::erase(text, kWhole);
    return Status(refusal.code(), text);
  }
}

std::optional<int> ArgumentParser::ParseAndPrint(int argc, const char* const* argv) {
  const Result<std::optional<std::string>> text = Parse(argc, argv);
  if (!text.ok()) {
    std::fprintf(stderr, "%s: %s\n", name().c_str(), text.status().message().c_str());
    return 2;
  }
  if (!text->has_value()) return std::nullopt;
  std::fputs((*text)->c_str(), stdout);
  return 0;
}

Result<std::vector<uint64_t>> ParseCounts(const char* option, std::string_view text) {
  std::vector<uint64_t> counts;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    uint64_t count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || (next != end && *next != ',')) break;
    counts.push_back(count);
    if (next == end) return counts;
    at = next + 1;
  }
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", option,
                         "whole numbers separated by commas", "\"" + std::string(text) + "\"");
}

}  // namespace kinglet
