#include "tools/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace kinglet {

Option& Option::Required() {
  option_->required();
  return *this;
}

Option& Option::Called(const std::string& value) {
  option_->type_name(value);
  return *this;
}

Option& Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

// The empty descriptions keep CLI11 from adding the check's text to the value's name in help.
template <class T>
Option& Option::Between(T least, T most) {
  option_->check(CLI::Range(least, most).description(""));
  return *this;
}
template Option& Option::Between(int, int);
template Option& Option::Between(uint32_t, uint32_t);
template Option& Option::Between(uint64_t, uint64_t);
template Option& Option::Between(double, double);

Option& Option::NonNegative() {
  option_->check(CLI::Validator(CLI::NonNegativeNumber).description(""));
  return *this;
}

Option& Option::OneOf(std::vector<std::string> values) {
  option_->check(CLI::IsMember(std::move(values)).description(""));
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

Option& Option::Says(const std::string& help) {
  option_->description(help);
  return *this;
}

template <class T>
Option Arguments::Add(const std::string& name, T& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
template Option Arguments::Add(const std::string&, std::string&, const std::string&);
template Option Arguments::Add(const std::string&, int&, const std::string&);
template Option Arguments::Add(const std::string&, uint32_t&, const std::string&);
template Option Arguments::Add(const std::string&, uint64_t&, const std::string&);
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

Option Arguments::Get(const std::string& name) { return Option(app_->get_option(name)); }

void Arguments::Footer(const std::string& text) { app_->footer(text); }

Arguments Arguments::AddSubcommand(const std::string& name, const std::string& about) {
  return Arguments(app_->add_subcommand(name, about));
}

void Arguments::RequireSubcommand() { app_->require_subcommand(1); }

std::string Arguments::name() const { return app_->get_name(); }

bool Arguments::parsed() const { return app_->parsed(); }

ArgumentParser::ArgumentParser(const std::string& about, const std::string& name)
    : Arguments(nullptr), owned_(std::make_unique<CLI::App>(about, name)) {
  app_ = owned_.get();
}

ArgumentParser::~ArgumentParser() = default;

void ArgumentParser::AddVersion(std::function<std::string()> text) {
  app_->set_version_flag("--version", std::move(text),
                         "Print the version and the backends and exit");
}

Result<std::optional<std::string>> ArgumentParser::Parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return std::optional<std::string>();
  } catch (const CLI::CallForVersion& version) {
    return std::optional<std::string>(version.what());
  } catch (const CLI::Success&) {  // --help
    return std::optional<std::string>(app_->help());
  } catch (const CLI::ParseError& error) {
    const auto chosen = app_->get_subcommands();
    std::string program = name(), where = "command";
    if (!chosen.empty()) {
      where = chosen.front()->get_name();
      program += " " + where;
    }
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", where,
                           "arguments as listed by `" + program + " --help`", error.what());
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

}  // namespace kinglet
