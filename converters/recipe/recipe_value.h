// The values of a recipe's JSON, read or to be written (recipe_text.h).
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_VALUE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_VALUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kinglet {

// Replaces the JSON library's own containers, whose destructors allocate and end the process if
// memory runs out.
struct RecipeValue {
  enum class Kind : uint8_t { kScalar, kArray, kObject };

  Kind kind = Kind::kScalar;
  nlohmann::json scalar{};           // of kScalar
  std::vector<RecipeValue> items{};  // of an array, or an object's members, in the text's order
  std::vector<std::string> names{};  // of the members

  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }
  // The member of that name; nullptr if there is none.
  const RecipeValue* Find(std::string_view name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    return found != names.end() ? &items[static_cast<size_t>(found - names.begin())] : nullptr;
  }
  // Sets a member of an object and replaces one of that name. A value that is not a RecipeValue is
  // a scalar of the JSON library.
  template <class Value>
  RecipeValue& Set(std::string_view name, Value value) {
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
  static RecipeValue Made(Value value) {
    if constexpr (std::is_same_v<Value, RecipeValue>) {
      return value;
    } else {
      RecipeValue made;
      made.scalar = std::move(value);
      return made;
    }
  }
};

inline RecipeValue ObjectValue() { return {.kind = RecipeValue::Kind::kObject}; }
inline RecipeValue ArrayValue() { return {.kind = RecipeValue::Kind::kArray}; }

// Builds the values of a JSON text that nests no deeper than a recipe may.
class RecipeValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  RecipeValue Build(std::string_view text) {
    nlohmann::json::sax_parse(text, this);
    return std::move(root_);
  }

  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add({.scalar = value}); }
  bool number_integer(number_integer_t value) override { return Add({.scalar = value}); }
  bool number_unsigned(number_unsigned_t value) override { return Add({.scalar = value}); }
  bool number_float(number_float_t value, const string_t&) override {
    return Add({.scalar = value});
  }
  bool string(string_t& value) override { return Add({.scalar = std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(size_t) override { return Add({.kind = RecipeValue::Kind::kObject}); }
  bool start_array(size_t) override { return Add({.kind = RecipeValue::Kind::kArray}); }
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
  bool Add(RecipeValue value) {
    const bool opens = value.kind != RecipeValue::Kind::kScalar;
    RecipeValue* place = &root_;
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

  RecipeValue root_;
  std::vector<RecipeValue*> open_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_VALUE_H_
