#include "converters/recipe/recipe_node.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "converters/sources/input_file.h"
#include "converters/sources/quoted.h"

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

// Three times the depth that any recipe needs. The limit protects the stack of the JSON library's
// parser, which follows TextCheck.
constexpr size_t kMaxDepth = 32;

// The place of an object's member, "/embedding/table"; a key with unusual characters is quoted.
std::string KeyPath(const std::string& where, std::string_view key) {
  const std::string quoted = QuotedName(key);
  const bool plain = quoted.size() == key.size() + 2;
  return where + "/" + (plain ? std::string(key) : quoted);
}

Status RefuseAt(const std::string& source, const std::string& where, const std::string& expected,
                const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe",
                         source + (where.empty() ? "" : ", " + where), expected, found);
}

// Checks a text before it is parsed, without building anything. Refuses broken JSON, a name that
// occurs twice in an object (the library would drop one of the two silently), and deep nesting.
class TextCheck : public nlohmann::json_sax<Json> {
 public:
  explicit TextCheck(const std::string& source) : source_(source) {}
  Status status() const { return status_; }

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(size_t) override { return Open(true); }
  bool start_array(size_t) override { return Open(false); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (!open_.back().names.insert(name).second) {
      return Refuse(Where(), "each name once", QuotedName(name) + " again");
    }
    open_.back().key = name;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // `position` counts the byte that could not be read.
    const bool number = dynamic_cast<const Json::out_of_range*>(&error) != nullptr;
    return Refuse(
        Where(), number ? "numbers that a double can hold" : "JSON",
        (number ? "a larger one before byte " : "none at byte ") + std::to_string(position));
  }

 private:
  struct Level {
    bool object;
    std::unordered_set<std::string> names;  // of an object
    std::string key;                        // of the member that is being read
    uint64_t items = 0;                     // how many values were read before
  };

  bool Value() {
    if (!open_.empty()) ++open_.back().items;
    return true;
  }
  bool Open(bool object) {
    if (open_.size() == kMaxDepth) {
      return Refuse(Where(), "at most " + std::to_string(kMaxDepth) + " levels of nesting", "more");
    }
    open_.push_back({object, {}, {}, 0});
    return true;
  }
  bool Close() {
    open_.pop_back();
    return Value();
  }
  // The place of the value that is being read.
  std::string Where() const {
    std::string where;
    for (const Level& level : open_) {
      where = level.object ? KeyPath(where, level.key) : where + "/" + std::to_string(level.items);
    }
    return where;
  }
  bool Refuse(const std::string& where, const std::string& expected, const std::string& found) {
    status_ = RefuseAt(source_, where, expected, found);
    return false;
  }

  const std::string& source_;
  std::vector<Level> open_;
  Status status_;
};

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
  TextCheck check(source);
  if (!Json::sax_parse(text, &check)) return check.status();
  Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return RecipeNode(std::make_shared<const Json>(std::move(parsed)), source, "");
}

RecipeNode RecipeNode::Inner(const Json& value, const std::string& where) const {
  return RecipeNode(Value(value_, &value), source_, where);
}

Status RecipeNode::Refuse(const std::string& expected, const std::string& found) const {
  return RefuseAt(source_, where_, expected, found);
}

std::string RecipeNode::Outline() const {
  switch (value_->type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return QuotedName(value_->get_ref<const std::string&>());
    case Json::value_t::null:
    case Json::value_t::boolean:
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
    case Json::value_t::binary:     // JSON text has none
    case Json::value_t::discarded:  // Parse refuses what would give it
      break;
  }
  return value_->dump();
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
    items.push_back(Inner((*value_)[i], where_ + "/" + std::to_string(i)));
  }
  return items;
}

Result<std::vector<std::string>> RecipeNode::Texts() const {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, Items());
  std::vector<std::string> texts;
  for (const RecipeNode& item : items) {
    KINGLET_ASSIGN_OR_RETURN(std::string text, item.Text());
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<size_t> RecipeNode::Choice(std::span<const std::string_view> choices) const {
  const auto at = value_->is_string() ? std::find(choices.begin(), choices.end(),
                                                  value_->get_ref<const std::string&>())
                                      : choices.end();
  if (at == choices.end()) return Refuse(Listed(choices), Outline());
  return static_cast<size_t>(at - choices.begin());
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
  return Inner(*found, KeyPath(where_, key));
}

Result<RecipeNode> RecipeNode::Get(std::string_view key) const {
  if (!value_->is_object()) return Refuse("an object", Outline());
  std::optional<RecipeNode> found = Find(key);
  if (!found) return Refuse("\"" + std::string(key) + "\"", "none");
  return *std::move(found);
}

Result<std::string> RecipeNode::TextAt(std::string_view key) const {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, Get(key));
  return member.Text();
}
Result<double> RecipeNode::NumberAt(std::string_view key) const {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, Get(key));
  return member.Number();
}
Result<uint64_t> RecipeNode::CountAt(std::string_view key) const {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, Get(key));
  return member.Count();
}
Result<std::vector<RecipeNode>> RecipeNode::ItemsAt(std::string_view key) const {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, Get(key));
  return member.Items();
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
Result<size_t> RecipeNode::ChoiceOr(std::string_view key, std::span<const std::string_view> choices,
                                    size_t otherwise) const {
  const std::optional<RecipeNode> found = Find(key);
  return found ? found->Choice(choices) : otherwise;
}

}  // namespace kinglet
