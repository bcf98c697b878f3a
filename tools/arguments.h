// Command-line options and operands, on CLI11, whose templates are compiled once, in arguments.cc,
// and not in every command. Errors of usage are in usage_errors.h.
#ifndef KINGLET_TOOLS_ARGUMENTS_H_
#define KINGLET_TOOLS_ARGUMENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kinglet {

// A handle to one option or operand, which its ArgumentParser owns. Each setter returns the option
// itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& Required(bool required = true);
  // The placeholder of the value in the help: "FILE". "" for an operand, which has its own name.
  Option& Placeholder(const std::string& value);
  // Each mention of the option takes one value: operands may follow it.
  Option& OneValueEach();
  // The help shows the current value of the variable as the default.
  Option& ShowDefault();
  // Refuses values outside [least, most]. T: int, uint32_t, uint64_t, size_t, double.
  template <class T>
  Option& Between(T least, T most);
  Option& NonNegative();
  // The placeholder becomes the list: "a|b|c".
  Option& OneOf(std::vector<std::string> values);
  // Refuses a command line that has this option without (Needs) or together with (Excludes) the
  // other one.
  Option& Needs(const Option& other);
  Option& Excludes(const Option& other);
  // Replaces the description in the help.
  Option& Help(const std::string& help);

 private:
  CLI::Option* option_;
};

// The placeholder of an option whose file may be "-", standard input. Each other option and operand
// that names a file refuses "-".
inline constexpr const char* kFileOrStandardInput = "FILE|-";

// The contents of a command's help: for manual pages and shell completions.
struct ArgumentFacts {
  struct Item {
    std::vector<std::string> names;  // "-o", "--output"; an operand has one: "M.kgl"
    std::string value;  // the placeholder, "FILE" or "a|b|c"; "" for a flag or an operand
    std::string about;
    std::string start;  // the value without the option, where the help shows it
    bool required = false;
    bool file = false;     // the value is the path of a file or folder
    bool several = false;  // more than one value
  };
  std::string name, about, footer;
  std::vector<Item> operands, options;
};

// A handle to the arguments of one command, which the ArgumentParser owns.
class Arguments {
 public:
  explicit Arguments(CLI::App* app) : app_(app) {}

  // `name`: "--name", "-n,--name", or "NAME" for an operand. Parsing writes `value`, which must
  // outlive it. T: std::string, int, uint32_t, uint64_t, size_t, double, and std::optional of all
  // but size_t; std::vector<std::string> takes one or more values.
  template <class T>
  Option Add(const std::string& name, T& value, const std::string& help = "");
  Option AddFlag(const std::string& name, bool& value, const std::string& help);
  // An option that was added before.
  Option Get(const std::string& name);
  // Text at the end of the help.
  void Footer(const std::string& text);

  Arguments AddSubcommand(const std::string& name, const std::string& about);
  void RequireSubcommand();
  // The title under which the program's help lists this subcommand.
  void Group(const std::string& title);

  std::string name() const;
  ArgumentFacts Facts() const;
  // Whether the command line has this subcommand.
  bool parsed() const;

 protected:
  CLI::App* app_;
};

// A program's command line.
class ArgumentParser : public Arguments {
 public:
  ArgumentParser(const std::string& about, const std::string& name);
  ArgumentParser(const ArgumentParser&) = delete;
  ArgumentParser& operator=(const ArgumentParser&) = delete;
  ~ArgumentParser();

  // Lines of the help have at most this many columns where words allow it; 80 by default.
  void FoldHelp(size_t columns);
  // `--version` prints this text; `text` is called only then.
  void AddVersion(std::function<std::string()> text);
  // For --help and --version, returns the text to print; the program then ends. Otherwise nullopt.
  // KINGLET_INVALID_ARGUMENT for a wrong command line.
  Result<std::optional<std::string>> Parse(int argc, const char* const* argv);
  // Parse, which also prints the text or the error. Returns the exit status if the program should
  // end: 0, or 2 for a wrong command line.
  std::optional<int> ParseAndPrint(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> owned_;
};

// The value "a,b,c" of an option. KINGLET_INVALID_ARGUMENT, naming the option, for a text that is
// not one or more whole numbers.
Result<std::vector<uint64_t>> ParseCounts(const char* option, std::string_view text);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_ARGUMENTS_H_
