#include "tools/pages/manual.h"

#include <string_view>

namespace kinglet {
namespace {

// Plain text in troff: a backslash and a hyphen have a meaning, and so does a dot or an apostrophe
// that begins a line.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool line_begins = escaped.empty() || escaped.back() == '\n';
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Bold(const std::string& text) { return "\\fB" + Escaped(text) + "\\fR"; }
std::string Italic(const std::string& text) { return "\\fI" + Escaped(text) + "\\fR"; }

std::string Capitals(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

// One fact, one line of the source: the date of a page is omitted, so that builds repeat.
std::string Head(const std::string& name, const std::string& version, const std::string& about) {
  return ".TH " + Escaped(Capitals(name)) + " 1 \"\" \"kinglet " + version + "\" \"kinglet\"\n" +
         ".SH NAME\n" + Escaped(name) + " \\- " + Escaped(about) + "\n";
}

std::string OptionEntry(const ArgumentFacts::Item& item) {
  std::string names;
  for (const std::string& name : item.names) names += (names.empty() ? "" : ", ") + Bold(name);
  std::string entry = ".TP\n" + names;
  if (!item.value.empty()) entry += " " + Italic(item.value);
  if (!item.start.empty()) entry += " [" + Escaped(item.start) + "]";
  return entry + "\n" + Escaped(item.about) + (item.required ? " (required)" : "") + "\n";
}

// A footer is "Title:\n  lines as typed".
std::string FooterSection(const std::string& footer) {
  const size_t colon = footer.find(":\n");
  if (colon == footer.npos) return footer.empty() ? "" : ".PP\n" + Escaped(footer) + "\n";
  std::string section = ".SH " + Capitals(footer.substr(0, colon)) + "\n.nf\n";
  return section + Escaped(footer.substr(colon + 2)) + "\n.fi\n";
}

std::string ExitStatus() {
  return ".SH EXIT STATUS\n.TP\n0\nsuccess\n.TP\n1\nfailure; one line on standard error names the "
         "location, what was expected and what was found\n.TP\n2\na wrong command line\n";
}

}  // namespace

std::string ProgramManual(const ArgumentFacts& program, const std::vector<ArgumentFacts>& commands,
                          const std::string& version) {
  std::string page = Head(program.name, version, program.about);
  page += ".SH SYNOPSIS\n" + Bold(program.name) + " " + Italic("SUBCOMMAND") + " [" +
          Italic("OPTIONS") + "]\n.SH SUBCOMMANDS\n";
  for (const ArgumentFacts& command : commands) {
    page +=
        ".TP\n" + Bold(program.name + "-" + command.name) + "(1)\n" + Escaped(command.about) + "\n";
  }
  page += ".SH OPTIONS\n";
  for (const ArgumentFacts::Item& item : program.options) page += OptionEntry(item);
  return page + FooterSection(program.footer) + ExitStatus();
}

std::string CommandManual(const ArgumentFacts& command, const std::string& program,
                          const std::string& version) {
  std::string page = Head(program + "-" + command.name, version, command.about);
  page += ".SH SYNOPSIS\n" + Bold(program + " " + command.name);
  for (const ArgumentFacts::Item& operand : command.operands) {
    const std::string name = Italic(operand.names.front()) + (operand.several ? "..." : "");
    page += operand.required ? " " + name : " [" + name + "]";
  }
  for (const ArgumentFacts::Item& option : command.options) {
    if (!option.required) continue;
    page += " " + Bold(option.names.front()) + " " + Italic(option.value);
  }
  page += " [" + Italic("OPTIONS") + "]\n.SH OPERANDS\n";
  for (const ArgumentFacts::Item& operand : command.operands) {
    page += ".TP\n" + Italic(operand.names.front()) + "\n" + Escaped(operand.about) + "\n";
  }
  page += ".SH OPTIONS\n";
  for (const ArgumentFacts::Item& item : command.options) page += OptionEntry(item);
  return page + FooterSection(command.footer) + ExitStatus() + ".SH SEE ALSO\n" + Bold(program) +
         "(1)\n";
}

}  // namespace kinglet
