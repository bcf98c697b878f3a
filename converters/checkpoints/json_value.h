// The values of a JSON text as a tree: recipes, read or to be written (recipe_text.h), and
// tokenizers' files. Readers that keep little of a text use json_events.h.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_JSON_VALUE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_JSON_VALUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kinglet {

// Replaces the JSON library's own containers, whose destructors allocate and end the process if
// memory runs out. Its comparisons of a value with a text do so, too.
struct JsonValue {
  enum class Kind : uint8_t { kScalar, kArray, kObject };

  Kind kind = Kind::kScalar;
  nlohmann::json scalar{};           // of kScalar
  std::vector<JsonValue> items{};    // of an array, or an object's members, in the text's order
  std::vector<std::string> names{};  // of the members

  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }
  // Whether it is this scalar of the JSON library.
  bool Is(const nlohmann::json& other) const { return kind == Kind::kScalar && scalar == other; }
  bool is_null() const { return Is(nullptr); }
  bool is_true() const { return Is(true); }
  bool IsText(std::string_view other) const { return text() != nullptr && *text() == other; }
  // nullptr for other values.
  const std::string* text() const {
    return kind == Kind::kScalar ? scalar.get_ptr<const std::string*>() : nullptr;
  }
  // nullopt for other values than integers from 0 to 2^64 - 1.
  std::optional<uint64_t> number() const {
    if (kind != Kind::kScalar || !scalar.is_number_unsigned()) return std::nullopt;
    return scalar.get<uint64_t>();
  }
  // The member of that name; nullptr if there is none.
  const JsonValue* Find(std::string_view name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    return found != names.end() ? &items[static_cast<size_t>(found - names.begin())] : nullptr;
  }
  // Sets a member of an object and replaces one of that name. A value that is not a JsonValue is
  // a scalar of the JSON library.
  template <class Value>
  JsonValue& Set(std::string_view name, Value value) {
    kind = Kind::kObject;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
      items[static_cast<size_t>(found - names.begin())] = Made(std::move(value));
    } else {
      items.push_back(Made(std::move(value)));
      names.emplace_back(name);
    }
    return *this;
  }
  template <class Value>
  void Append(Value value) {
    kind = Kind::kArray;
    items.push_back(Made(std::move(value)));
  }

 private:
  template <class Value>
  static JsonValue Made(Value value) {
    if constexpr (std::is_same_v<Value, JsonValue>) {
      return value;
    } else {
      JsonValue made;
      made.scalar = std::move(value);
      return made;
    }
  }
};

inline JsonValue ObjectValue() { return {.kind = JsonValue::Kind::kObject}; }
inline JsonValue ArrayValue() { return {.kind = JsonValue::Kind::kArray}; }

// Builds the values of a JSON text.
class JsonValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Three times the depth that any recipe needs: functions follow a value by recursion.
  static constexpr size_t kMostLevels = 32;

  // Null for a text that is not JSON, or nests deeper.
  JsonValue Build(std::string_view text) {
    const bool whole = nlohmann::json::sax_parse(text, this);
    return whole ? std::move(root_) : JsonValue();
  }
  bool is_too_deep() const { return is_too_deep_; }

  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add({.scalar = value}); }
  bool number_integer(number_integer_t value) override { return Add({.scalar = value}); }
  bool number_unsigned(number_unsigned_t value) override { return Add({.scalar = value}); }
  bool number_float(number_float_t value, const string_t&) override {
    return Add({.scalar = value});
  }
  bool string(string_t& value) override { return Add({.scalar = std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(size_t) override { return Add({.kind = JsonValue::Kind::kObject}); }
  bool start_array(size_t) override { return Add({.kind = JsonValue::Kind::kArray}); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    open_.back()->names.push_back(std::move(name));
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Add(JsonValue value) {
    const bool opens = value.kind != JsonValue::Kind::kScalar;
    is_too_deep_ = opens && open_.size() == kMostLevels;
    if (is_too_deep_) return false;
    JsonValue* place = &root_;
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back()->items.push_back(std::move(value));
      place = &open_.back()->items.back();
    }
    // The pointer stays valid: while a value is open, nothing is added to the one that contains it.
    if (opens) open_.push_back(place);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  JsonValue root_;
  std::vector<JsonValue*> open_;
  bool is_too_deep_ = false;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_JSON_VALUE_H_
