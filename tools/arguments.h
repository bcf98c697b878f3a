// What stands on a command line. A narrow face of CLI11, so that its templates are compiled once,
// in arguments.cc, and not in every command.
#ifndef KINGLET_TOOLS_ARGUMENTS_H_
#define KINGLET_TOOLS_ARGUMENTS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kinglet {

// One option or operand; a handle to what its Arguments own. Each call returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& Required();
  // What help calls the value: "FILE". An operand's name is its own: "".
  Option& Called(const std::string& value);
  // Help shows the value that the variable has now.
  Option& ShowDefault();
  // Refuses other values. T: int, uint32_t, uint64_t, double.
  template <class T>
  Option& Between(T least, T most);
  Option& NonNegative();
  Option& OneOf(std::vector<std::string> values);
  // Refuses a command line with this one and without, or with, the other one.
  Option& Needs(const Option& other);
  Option& Excludes(const Option& other);
  // Another text in the help.
  Option& Says(const std::string& help);

 private:
  CLI::Option* option_;
};

// The arguments of one command; a handle to what the ArgumentParser owns.
class Arguments {
 public:
  explicit Arguments(CLI::App* app) : app_(app) {}

  // "--name", "-n,--name", or an operand's "NAME". `value` is written when the line is parsed and
  // outlives that. T: std::string, int, uint32_t, uint64_t, double, and std::optional of them.
  template <class T>
  Option Add(const std::string& name, T& value, const std::string& help = "");
  Option AddFlag(const std::string& name, bool& value, const std::string& help);
  // An option that is there already.
  Option Get(const std::string& name);
  // Help ends with it.
  void Footer(const std::string& text);

  Arguments AddSubcommand(const std::string& name, const std::string& about);
  void RequireSubcommand();

  std::string name() const;
  // Whether this subcommand was on the line.
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

  // `--version` asks for this text, which is made only then.
  void AddVersion(std::function<std::string()> text);
  // The text to print, and nothing more to do, where help or the version is asked for.
  // KINGLET_INVALID_ARGUMENT for a line that is not as help says.
  Result<std::optional<std::string>> Parse(int argc, const char* const* argv);
  // The same for a program that prints what there is to print itself: the exit status if it is not
  // to go on, 2 for a wrong line.
  std::optional<int> ParseAndPrint(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_ARGUMENTS_H_
