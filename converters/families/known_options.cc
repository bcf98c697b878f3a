#include "converters/families/known_options.h"

#include <algorithm>

#include "converters/checkpoints/quoted.h"
#include "converters/name_pattern.h"

namespace kinglet {
namespace {

std::vector<std::string_view> CutAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool ListsName(std::string_view names, std::string_view name) {
  const auto patterns = OptionNames(names);
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](std::string_view pattern) { return MatchesPattern(pattern, name); });
}

// A value such as 'transformer_lm*' has its closing quote after the star.
bool FitsValue(std::string_view pattern, std::string_view value) {
  if (!pattern.ends_with("*'")) return pattern == value;
  return value.ends_with('\'') &&
         MatchesPattern(pattern.substr(0, pattern.size() - 1), value.substr(0, value.size() - 1));
}

bool HasFixedValue(const FixedOption& option, std::string_view value) {
  const auto values = CutAt(option.values, '|');
  return value == "None" || std::any_of(values.begin(), values.end(), [&](std::string_view each) {
           return FitsValue(each, value);
         });
}

std::string ValuesText(const FixedOption& option) {
  std::string text;
  for (const std::string_view value : CutAt(option.values, '|')) {
    text += (text.empty() ? "" : " or ") + std::string(value);
  }
  return text;
}

bool Ignores(IgnoredOptions* ignored, const std::string& name) {
  if (ignored == nullptr) return false;
  const auto& names = ignored->names;
  if (std::find(names.begin(), names.end(), name) == names.end()) return false;
  ignored->met.push_back(name);
  return true;
}

}  // namespace

std::vector<std::string_view> OptionNames(std::string_view names) { return CutAt(names, ' '); }

Status CheckOptions(const OptionTable& table, const std::string& what, const std::string& where,
                    std::span<const StatedOption> stated, IgnoredOptions* ignored) {
  std::vector<const StatedOption*> unknown;
  for (const StatedOption& option : stated) {
    if (option.value == "None" && ListsName(table.never_none, option.name)) {
      return Status::Refusal(KINGLET_UNSUPPORTED, what, where + option.name, "a value",
                             "None (write the value that the network was trained with)");
    }
    const auto fixed =
        std::find_if(table.fixed.begin(), table.fixed.end(),
                     [&](const FixedOption& each) { return each.name == option.name; });
    if (fixed == table.fixed.end()) {
      if (ListsName(table.honoured, option.name) || ListsName(table.by_tensors, option.name) ||
          ListsName(table.ignored, option.name)) {
        continue;
      }
      if (!Ignores(ignored, option.name)) unknown.push_back(&option);
      continue;
    }
    if (HasFixedValue(*fixed, option.value)) continue;
    if (fixed->a_name && Ignores(ignored, option.name)) continue;
    const std::string next =
        fixed->a_name ? " (another name of such a network: --ignore-option " + option.name + ")"
                      : "";
    return Status::Refusal(KINGLET_UNSUPPORTED, what, where + option.name,
                           fixed->values.empty() ? "None" : ValuesText(*fixed),
                           option.value + next);
  }
  if (unknown.empty()) return {};
  std::string names;
  for (const StatedOption* option : unknown) {
    names += (names.empty() ? "" : " ") + QuotedName(option->name);
  }
  const size_t others = unknown.size() - 1;
  return Status::Refusal(
      KINGLET_UNSUPPORTED, what, where + unknown.front()->name, "an option that kinglet knows",
      QuotedName(unknown.front()->name) + " = " + unknown.front()->value +
          (others > 0 ? " and " + std::to_string(others) + " more" : "") + " (--ignore-option " +
          names + " if the network's output does not depend on " + (others > 0 ? "them)" : "it)"));
}

Status CheckAllMet(const IgnoredOptions& ignored) {
  for (const std::string& name : ignored.names) {
    if (std::find(ignored.met.begin(), ignored.met.end(), name) != ignored.met.end()) continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "ignore-option",
                           "options of the checkpoint that kinglet does not know",
                           QuotedName(name) + " (remove it from --ignore-option)");
  }
  return {};
}

}  // namespace kinglet
