#include "converters/recipe/recipe_node.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "converters/checkpoints/json_value.h"
#include "converters/checkpoints/quoted.h"
#include "format/input_file.h"
#include "format/utf8.h"

namespace kinglet {

namespace {

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

// The path of an object's member, "/embedding/table"; a key with unusual characters is quoted.
std::string KeyPath(const std::string& where, std::string_view key) {
  const std::string quoted = QuotedName(key);
  const bool plain = quoted.size() == key.size() + 2;
  return where + "/" + (plain ? std::string(key) : quoted);
}

// "line 3, column 14" of a byte of the text.
std::string LocationText(std::string_view text, size_t offset) {
  size_t line = 1, column = 1;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else if (!ContinuesCharacter(c)) {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

Status RefuseAt(const std::string& name, std::string_view text, size_t offset,
                const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(
      KINGLET_INVALID_ARGUMENT, "recipe",
      name + ", " + LocationText(text, offset) + (where.empty() ? "" : ", " + where), expected,
      found);
}

// An iterator over the text that counts the characters that the parser has read, because its events
// do not.
class CountedChars {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedChars(const char* at, size_t* taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *at_; }
  CountedChars& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  CountedChars operator++(int) {
    const CountedChars before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountedChars& other) const { return at_ == other.at_; }
  bool operator!=(const CountedChars& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* taken_;
};

// Checks a text before it is parsed, without building anything. Refuses broken JSON, a name that
// occurs twice in an object (the library would drop one of the two silently), and deep nesting.
class TextCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  TextCheck(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  Status Check() {
    const char* begin = text_.data();
    nlohmann::json::sax_parse(CountedChars(begin, &taken_),
                              CountedChars(begin + text_.size(), &taken_), this);
    return status_;
  }

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
    open_.back().key = name;
    if (open_.back().names.insert(name).second) return true;
    return Refuse(StartOfText(), "each name once", QuotedName(name) + " again");
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // `position` counts the characters up to the one that could not be read.
    const bool number = dynamic_cast<const nlohmann::json::out_of_range*>(&error) != nullptr;
    const bool ended = position > text_.size();
    return Refuse(position == 0 ? 0 : std::min(position - 1, text_.size()),
                  number ? "numbers that a double can hold" : "JSON",
                  number  ? "a larger one, which ends here"
                  : ended ? "the end of the file"
                          : "another character");
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
    constexpr size_t kMost = JsonValueBuilder::kMostLevels;
    if (open_.size() == kMost) {
      return Refuse(taken_ - 1, "at most " + std::to_string(kMost) + " levels of nesting", "more");
    }
    open_.push_back({object, {}, {}, 0});
    return true;
  }
  bool Close() {
    open_.pop_back();
    return Value();
  }
  // The offset of the string whose closing quote was read last.
  size_t StartOfText() const {
    size_t at = taken_ - 1;
    bool escaped = true;
    while (escaped && at > 0) {
      at = text_.rfind('"', at - 1);
      size_t backslashes = 0;
      while (backslashes < at && text_[at - 1 - backslashes] == '\\') ++backslashes;
      escaped = backslashes % 2 == 1;
    }
    return at;
  }
  // The path of the value that is being read.
  std::string Where() const {
    std::string where;
    for (const Level& level : open_) {
      where = level.object ? KeyPath(where, level.key) : where + "/" + std::to_string(level.items);
    }
    return where;
  }
  bool Refuse(size_t offset, const std::string& expected, const std::string& found) {
    status_ = RefuseAt(name_, text_, offset, Where(), expected, found);
    return false;
  }

  const std::string& name_;
  const std::string_view text_;
  size_t taken_ = 0;
  std::vector<Level> open_;
  Status status_;
};

// Finds where a value, or the name of a member, begins in a text that was parsed. Follows text and
// values together, so that no value has to store its location.
class LocationFinder {
 public:
  LocationFinder(std::string_view text, const JsonValue& wanted, bool its_name)
      : text_(text), wanted_(wanted), its_name_(its_name) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
  }

  // The offset in the text. REQUIRES: `value` is the root of the text's values; `wanted` is one of
  // them.
  size_t Find(const JsonValue& value) {
    Look(value);
    return at_;
  }

 private:
  // True if the wanted location was found, at at_.
  bool Look(const JsonValue& value) {
    SkipSpace();
    if (!its_name_ && &value == &wanted_) return true;
    if (value.is_object()) return LookInObject(value);
    if (value.is_array()) return LookInArray(value);
    if (value.scalar.is_string()) {
      SkipText();
    } else {
      at_ = text_.find_first_of(",]} \t\r\n", at_);
    }
    return false;
  }
  bool LookInObject(const JsonValue& object) {
    for (const JsonValue& member : object.items) {
      ++at_;  // { or ,
      SkipSpace();
      const size_t begin = at_;
      SkipText();
      if (its_name_ && &member == &wanted_) {
        at_ = begin;
        return true;
      }
      SkipSpace();
      ++at_;  // :
      if (Look(member)) return true;
      SkipSpace();
    }
    return Leave(object.items.empty());
  }
  bool LookInArray(const JsonValue& array) {
    for (const JsonValue& item : array.items) {
      ++at_;  // [ or ,
      if (Look(item)) return true;
      SkipSpace();
    }
    return Leave(array.items.empty());
  }
  // Skips the end of an object or array, and, if it is empty, its beginning.
  bool Leave(bool empty) {
    if (empty) {
      ++at_;
      SkipSpace();
    }
    ++at_;
    return false;
  }
  void SkipSpace() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  void SkipText() {
    for (++at_; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  const std::string_view text_;
  const JsonValue& wanted_;
  const bool its_name_;
  size_t at_ = 0;
};

}  // namespace

struct RecipeNode::Document {
  std::string name, text;
  JsonValue root;

  Status Refuse(const JsonValue& value, bool its_name, const std::string& where,
                const std::string& expected, const std::string& found) const {
    return RefuseAt(name, text, LocationFinder(text, value, its_name).Find(root), where, expected,
                    found);
  }
};

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

Result<RecipeNode> RecipeNode::Parse(const std::string& name, std::string_view text) {
  KINGLET_RETURN_IF_ERROR(TextCheck(name, text).Check());
  const auto document = std::make_shared<const Document>(
      Document{name, std::string(text), JsonValueBuilder().Build(text)});
  return RecipeNode(document, document->root, "");
}

RecipeNode RecipeNode::Inner(const JsonValue& value, const std::string& where) const {
  return RecipeNode(document_, value, where);
}

Status RecipeNode::Refuse(const std::string& expected, const std::string& found) const {
  return document_->Refuse(*value_, false, where_, expected, found);
}

std::string RecipeNode::Outline() const {
  if (value_->is_object()) return "an object";
  if (value_->is_array()) return "an array";
  if (IsText()) return QuotedName(value_->scalar.get_ref<const std::string&>());
  return value_->scalar.dump();
}

bool RecipeNode::IsText() const { return value_->scalar.is_string(); }
bool RecipeNode::IsArray() const { return value_->is_array(); }

Result<std::string> RecipeNode::Text() const {
  if (!IsText()) return Refuse("a text", Outline());
  return value_->scalar.get_ref<const std::string&>();
}

Result<double> RecipeNode::Number() const {
  if (!value_->scalar.is_number()) return Refuse("a number", Outline());
  const double number = value_->scalar.get<double>();
  if (!std::isfinite(number)) return Refuse("a finite number", "another");
  return number;
}

Result<uint64_t> RecipeNode::Count() const {
  if (!value_->scalar.is_number_unsigned()) return Refuse("an integer from 0", Outline());
  return value_->scalar.get<uint64_t>();
}

Result<bool> RecipeNode::Truth() const {
  if (!value_->scalar.is_boolean()) return Refuse("true or false", Outline());
  return value_->scalar.get<bool>();
}

Result<std::vector<RecipeNode>> RecipeNode::Items() const {
  if (!value_->is_array()) return Refuse("an array", Outline());
  std::vector<RecipeNode> items;
  for (size_t i = 0; i < value_->items.size(); ++i) {
    items.push_back(Inner(value_->items[i], where_ + "/" + std::to_string(i)));
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
  const auto at = IsText() ? std::find(choices.begin(), choices.end(),
                                       value_->scalar.get_ref<const std::string&>())
                           : choices.end();
  if (at == choices.end()) return Refuse(Listed(choices), Outline());
  return static_cast<size_t>(at - choices.begin());
}

Result<std::vector<std::string>> RecipeNode::Keys() const {
  if (!value_->is_object()) return Refuse("an object", Outline());
  std::vector<std::string> keys = value_->names;
  std::sort(keys.begin(), keys.end());
  return keys;
}

Status RecipeNode::CheckKeys(std::initializer_list<std::string_view> known) const {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> keys, Keys());
  for (const std::string& key : keys) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::vector<std::string_view> names(known.begin(), known.end());
    return document_->Refuse(*value_->Find(key), true, where_, "a key " + Listed(names),
                             QuotedName(key));
  }
  return {};
}

RecipeNode RecipeNode::WithDefaults(const RecipeNode& other) const {
  RecipeNode both = *this;
  both.defaults_ = std::make_shared<const RecipeNode>(other);
  return both;
}

std::optional<RecipeNode> RecipeNode::Find(std::string_view key) const {
  if (!value_->is_object()) return std::nullopt;
  const JsonValue* const found = value_->Find(key);
  if (found != nullptr) return Inner(*found, KeyPath(where_, key));
  return defaults_ ? defaults_->Find(key) : std::nullopt;
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
Result<size_t> RecipeNode::ChoiceAt(std::string_view key,
                                    std::span<const std::string_view> choices) const {
  const std::optional<RecipeNode> found = Find(key);
  if (found) return found->Choice(choices);
  if (!value_->is_object()) return Refuse("an object", Outline());
  return Refuse("\"" + std::string(key) + "\": " + Listed(choices), "none");
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
