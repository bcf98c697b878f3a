#include "converters/families/pickled_options.h"

#include "converters/checkpoints/quoted.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

// The dict that contains the options; nullptr if there is none.
NodeRef OptionDict(const PickleNode& options) {
  const auto* object = options.As<PickleObject>();
  return object == nullptr ? &options : object->state;
}

}  // namespace

NodeRef PickledOption(const PickleNode& options, std::string_view name) {
  const NodeRef dict = OptionDict(options);
  return dict == nullptr ? nullptr : dict->Find(name);
}

std::vector<StatedOption> PickledOptions(const PickleNode& options) {
  std::vector<StatedOption> stated;
  const NodeRef node = OptionDict(options);
  const auto* dict = node == nullptr ? nullptr : node->As<PickleDict>();
  if (dict == nullptr) return stated;
  for (const auto& [key, value] : dict->items) {
    const auto* name = key->As<std::string>();
    stated.push_back({name != nullptr ? *name : OptionText(*key), OptionText(*value)});
  }
  return stated;
}

std::string OptionText(const PickleNode& value) {
  if (value.As<PickleNone>() != nullptr) return "None";
  if (const auto* truth = value.As<bool>()) return *truth ? "True" : "False";
  if (const auto* number = value.As<int64_t>()) return std::to_string(*number);
  if (const auto* number = value.As<double>()) return NumberText(*number);
  if (const auto* text = value.As<std::string>()) return QuotedName(*text);
  const auto* list = value.As<PickleList>();
  constexpr size_t kShown = 8;
  if (list == nullptr || list->items.size() > kShown) return value.Describe();
  std::string text;
  for (const PickleNode* item : list->items) {
    if (item->As<PickleList>() != nullptr) return value.Describe();
    text += (text.empty() ? "" : ", ") + OptionText(*item);
  }
  return "[" + text + "]";
}

}  // namespace kinglet
