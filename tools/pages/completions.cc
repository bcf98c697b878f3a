#include "tools/pages/completions.h"

#include <algorithm>
#include <cstddef>

namespace kinglet {
namespace {

// The values of an option whose placeholder lists them: "a|b|c". FILE|- is not such a list.
std::vector<std::string> Choices(const ArgumentFacts::Item& item) {
  std::vector<std::string> choices;
  if (item.file || item.value.find('|') == item.value.npos) return choices;
  for (size_t begin = 0; begin <= item.value.size();) {
    const size_t end = std::min(item.value.find('|', begin), item.value.size());
    choices.push_back(item.value.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

std::string Joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> AllNames(const std::vector<ArgumentFacts::Item>& items) {
  std::vector<std::string> names;
  for (const ArgumentFacts::Item& item : items) {
    names.insert(names.end(), item.names.begin(), item.names.end());
  }
  return names;
}

std::vector<std::string> CommandNames(const std::vector<ArgumentFacts>& commands) {
  std::vector<std::string> names;
  for (const ArgumentFacts& command : commands) names.push_back(command.name);
  names.emplace_back("help");
  return names;
}

// Text between single quotes of a shell. In zsh's specifications, brackets and colons have a
// meaning too.
std::string Quotable(const std::string& text, const std::string& special) {
  std::string quotable;
  for (const char c : text) {
    if (c == '\'') {
      quotable += "'\\''";
      continue;
    }
    if (special.find(c) != special.npos) quotable += '\\';
    quotable += c;
  }
  return quotable;
}

// The arms of bash's `case $previous` that complete an option's value.
std::string BashValues(const ArgumentFacts& command) {
  std::string arms;
  for (const ArgumentFacts::Item& item : command.options) {
    if (item.value.empty()) continue;
    const std::vector<std::string> choices = Choices(item);
    const std::string names = Joined(item.names, "|");
    if (!choices.empty()) {
      arms += "        " + names + ") COMPREPLY=($(compgen -W \"" + Joined(choices, " ") +
              "\" -- \"$word\")); return ;;\n";
    } else if (item.file) {
      arms += "        " + names + ") _kinglet_files; return ;;\n";
    } else {
      arms += "        " + names + ") return ;;\n";
    }
  }
  return arms;
}

}  // namespace

std::string BashCompletions(const ArgumentFacts& program,
                            const std::vector<ArgumentFacts>& commands) {
  std::string text =
      "# bash completion for kinglet\n"
      "# The shell's own completion of files quotes spaces, stars and other special characters.\n"
      "_kinglet_files() {\n"
      "  compopt -o bashdefault -o default\n"
      "}\n"
      "_kinglet() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local subcommands=\"" +
      Joined(CommandNames(commands), " ") +
      "\"\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"$subcommands " +
      Joined(AllNames(program.options), " ") +
      "\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  local options\n"
      "  case ${COMP_WORDS[1]} in\n"
      "    help) COMPREPLY=($(compgen -W \"$subcommands\" -- \"$word\")); return ;;\n";
  for (const ArgumentFacts& command : commands) {
    text += "    " + command.name + ")\n      options=\"" + Joined(AllNames(command.options), " ") +
            "\"\n      case $previous in\n" + BashValues(command) + "      esac ;;\n";
  }
  return text +
         "  esac\n"
         "  case $word in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) _kinglet_files ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _kinglet kinglet\n";
}

std::string ZshCompletions(const ArgumentFacts& program,
                           const std::vector<ArgumentFacts>& commands) {
  std::string text = "#compdef kinglet\n# zsh completion for " + program.name +
                     "\n_kinglet() {\n  if (( CURRENT == 2 )); then\n    local -a subcommands\n"
                     "    subcommands=(\n";
  for (const ArgumentFacts& command : commands) {
    text += "      '" + command.name + ":" + Quotable(command.about, ":") + "'\n";
  }
  text +=
      "      'help:The options of a subcommand'\n    )\n"
      "    _describe subcommand subcommands\n";
  text += "    compadd -- " + Joined(AllNames(program.options), " ") + "\n    return\n  fi\n";
  text += "  local subcommand=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $subcommand in\n";
  text += "    help) compadd -- " + Joined(CommandNames(commands), " ") + " ;;\n";
  for (const ArgumentFacts& command : commands) {
    text += "    " + command.name + ")\n      _arguments";
    for (const ArgumentFacts::Item& item : command.options) {
      for (const std::string& name : item.names) {
        text += " \\\n        '" + name + "[" + Quotable(item.about, "[]:") + "]";
        if (!item.value.empty()) {
          text += ":" + Quotable(item.value, ":") + ":";
          const std::vector<std::string> choices = Choices(item);
          if (!choices.empty()) text += "(" + Joined(choices, " ") + ")";
          if (item.file) text += "_files";
        }
        text += "'";
      }
    }
    text += " \\\n        '*:file:_files' ;;\n";
  }
  return text + "  esac\n}\n_kinglet \"$@\"\n";
}

std::string FishCompletions(const ArgumentFacts& program,
                            const std::vector<ArgumentFacts>& commands) {
  const std::string begin = "complete -c kinglet ";
  std::string text = "# fish completion for kinglet\n";
  for (const ArgumentFacts& command : commands) {
    text += begin + "-n __fish_use_subcommand -f -a " + command.name + " -d '" +
            Quotable(command.about, "") + "'\n";
  }
  text += begin + "-n __fish_use_subcommand -f -a help -d 'The options of a subcommand'\n";
  const auto add = [&](const std::string& condition, const ArgumentFacts::Item& item) {
    text += begin + "-n '" + condition + "'";
    for (const std::string& name : item.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    const std::vector<std::string> choices = Choices(item);
    if (!choices.empty()) text += " -x -a '" + Joined(choices, " ") + "'";
    if (choices.empty() && item.file) text += " -r -F";
    if (choices.empty() && !item.file && !item.value.empty()) text += " -x";
    text += " -d '" + Quotable(item.about, "") + "'\n";
  };
  for (const ArgumentFacts::Item& item : program.options) add("__fish_use_subcommand", item);
  for (const ArgumentFacts& command : commands) {
    for (const ArgumentFacts::Item& item : command.options) {
      add("__fish_seen_subcommand_from " + command.name, item);
    }
  }
  return text;
}

}  // namespace kinglet
