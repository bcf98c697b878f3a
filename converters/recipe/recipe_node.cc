#include "converters/recipe/recipe_node.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "converters/input_file.h"
#include "converters/quoted.h"

namespace kinglet {
namespace {

using Json = nlohmann::json;

// Far more than anyone writes by hand.
constexpr uint64_t kMaxRecipeBytes = uint64_t{1} << 24;

std::string Listed(std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += "\"" + std::string(names[i]) + "\"";
  }
  return text;
}

}  // namespace

Result<RecipeNode> RecipeNode::Read(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxRecipeBytes) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", path,
                           "at most " + std::to_string(kMaxRecipeBytes) + " bytes",
                           std::to_string(file.size()));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return Parse(path, text);
}

Result<RecipeNode> RecipeNode::Parse(const std::string& source, std::string_view text) {
  // A name twice in an object would silently hide the first.
  std::vector<std::vector<std::string>> open;
  std::string repeated;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.resize(static_cast<size_t>(depth) + 1);
    if (event == Json::parse_event_t::object_start) open.back().clear();
    if (event == Json::parse_event_t::key && static_cast<size_t>(depth) <= open.size()) {
      std::vector<std::string>& keys = open[static_cast<size_t>(depth) - 1];
      const auto& key = parsed.get_ref<const std::string&>();
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) repeated = key;
      keys.push_back(key);
    }
    return true;
  };
  Json parsed;
  try {
    parsed = Json::parse(text, watch, true, /*ignore_comments=*/false);
  } catch (const Json::parse_error& error) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", source, "JSON",
                           "none at byte " + std::to_string(error.byte));
  }
  if (!repeated.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", source, "each name once",
                           QuotedName(repeated) + " again");
  }
  auto document = std::make_shared<const Json>(std::move(parsed));
  const Json* root = document.get();
  return RecipeNode(std::move(document), root, source, "");
}

Status RecipeNode::Refuse(const std::string& expected, const std::string& found) const {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe",
                         source_ + (where_.empty() ? "" : ", " + where_), expected, found);
}

std::string RecipeNode::Outline() const {
  switch (value_->type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return QuotedName(value_->get_ref<const std::string&>());
    default:
      return value_->dump();
  }
}

bool RecipeNode::IsText() const { return value_->is_string(); }
bool RecipeNode::IsArray() const { return value_->is_array(); }

Result<std::string> RecipeNode::Text() const {
  if (!value_->is_string()) return Refuse("a text", Outline());
  return value_->get_ref<const std::string&>();
}

Result<double> RecipeNode::Number() const {
  if (!value_->is_number()) return Refuse("a number", Outline());
  const double number = value_->get<double>();
  if (!std::isfinite(number)) return Refuse("a finite number", "another");
  return number;
}

Result<uint64_t> RecipeNode::Count() const {
  if (!value_->is_number_unsigned()) return Refuse("an integer from 0", Outline());
  return value_->get<uint64_t>();
}

Result<bool> RecipeNode::Truth() const {
  if (!value_->is_boolean()) return Refuse("true or false", Outline());
  return value_->get<bool>();
}

Result<std::vector<RecipeNode>> RecipeNode::Items() const {
  if (!value_->is_array()) return Refuse("an array", Outline());
  std::vector<RecipeNode> items;
  for (size_t i = 0; i < value_->size(); ++i) {
    items.push_back(
        RecipeNode(document_, &(*value_)[i], source_, where_ + "/" + std::to_string(i)));
  }
  return items;
}

Result<std::vector<std::string>> RecipeNode::Keys() const {
  if (!value_->is_object()) return Refuse("an object", Outline());
  std::vector<std::string> keys;
  for (const auto& [key, member] : value_->items()) keys.push_back(key);
  return keys;
}

Status RecipeNode::CheckKeys(std::initializer_list<std::string_view> known) const {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> keys, Keys());
  for (const std::string& key : keys) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::vector<std::string_view> names(known.begin(), known.end());
    return Refuse("only " + Listed(names), QuotedName(key));
  }
  return {};
}

std::optional<RecipeNode> RecipeNode::Find(std::string_view key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto found = value_->find(key);
  if (found == value_->end()) return std::nullopt;
  return RecipeNode(document_, &*found, source_, where_ + "/" + std::string(key));
}

Result<RecipeNode> RecipeNode::Get(std::string_view key) const {
  if (!value_->is_object()) return Refuse("an object", Outline());
  std::optional<RecipeNode> found = Find(key);
  if (!found) return Refuse("\"" + std::string(key) + "\"", "none");
  return *std::move(found);
}

Result<double> RecipeNode::NumberOr(std::string_view key, double otherwise) const {
  const std::optional<RecipeNode> found = Find(key);
  return found ? found->Number() : otherwise;
}
Result<uint64_t> RecipeNode::CountOr(std::string_view key, uint64_t otherwise) const {
  const std::optional<RecipeNode> found = Find(key);
  return found ? found->Count() : otherwise;
}
Result<bool> RecipeNode::TruthOr(std::string_view key, bool otherwise) const {
  const std::optional<RecipeNode> found = Find(key);
  return found ? found->Truth() : otherwise;
}

Result<size_t> RecipeNode::Choice(std::span<const std::string_view> choices) const {
  const auto at = value_->is_string() ? std::find(choices.begin(), choices.end(),
                                                  value_->get_ref<const std::string&>())
                                      : choices.end();
  if (at == choices.end()) return Refuse(Listed(choices), Outline());
  return static_cast<size_t>(at - choices.begin());
}

Result<size_t> RecipeNode::ChoiceOr(std::string_view key, std::span<const std::string_view> choices,
                                    size_t otherwise) const {
  const std::optional<RecipeNode> found = Find(key);
  return found ? found->Choice(choices) : otherwise;
}

}  // namespace kinglet
