// A value in a recipe's JSON that knows its location, so that every refusal can name it. Only
// recipe_node.cc includes the JSON library, which is slow to compile.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_NODE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_NODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct JsonValue;

// Nodes are cheap to copy; the document lives as long as any of its nodes. Errors of all functions:
// KINGLET_INVALID_ARGUMENT, "recipe: FILE, line 3, column 14, /embedding/bins/0: expected .., found
// ..". Lines and columns count from 1, columns in characters, and point to the value's first
// character.
class RecipeNode {
 public:
  // The root of the document in a file, or in `text`, which messages call `name`. Errors of Read:
  // also KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
  static Result<RecipeNode> Read(const std::string& path);
  static Result<RecipeNode> Parse(const std::string& name, std::string_view text);

  // The error that names this value's location.
  Status Refuse(const std::string& expected, const std::string& found) const;
  // The value as an error shows it after "found": "an object", "3.5", "'lstm'".
  std::string Outline() const;

  bool IsText() const;
  bool IsArray() const;
  Result<std::string> Text() const;
  Result<double> Number() const;   // finite
  Result<uint64_t> Count() const;  // an integer from 0
  Result<bool> Truth() const;
  Result<std::vector<RecipeNode>> Items() const;   // of an array
  Result<std::vector<std::string>> Texts() const;  // of an array of texts
  // The index of the value's text in `choices`.
  Result<size_t> Choice(std::span<const std::string_view> choices) const;

  // Refuses a value that is not an object, and an object with a key outside `known`.
  Status CheckKeys(std::initializer_list<std::string_view> known) const;
  Result<std::vector<std::string>> Keys() const;  // of an object, sorted
  // The object with the members of `other` as defaults; messages name their locations in `other`.
  // Keys and CheckKeys see only the members of this object.
  RecipeNode WithDefaults(const RecipeNode& other) const;
  // The member of that name. Find returns nullopt if there is no such member or the value is not an
  // object.
  std::optional<RecipeNode> Find(std::string_view key) const;
  Result<RecipeNode> Get(std::string_view key) const;
  Result<std::string> TextAt(std::string_view key) const;
  Result<double> NumberAt(std::string_view key) const;
  Result<uint64_t> CountAt(std::string_view key) const;
  Result<std::vector<RecipeNode>> ItemsAt(std::string_view key) const;
  // The index of the member's text in `choices`. A refusal of a missing member lists them.
  Result<size_t> ChoiceAt(std::string_view key, std::span<const std::string_view> choices) const;
  // The member, or `otherwise` if there is none.
  Result<double> NumberOr(std::string_view key, double otherwise) const;
  Result<uint64_t> CountOr(std::string_view key, uint64_t otherwise) const;
  Result<bool> TruthOr(std::string_view key, bool otherwise) const;
  // The member's Choice, or `otherwise` if there is none.
  Result<size_t> ChoiceOr(std::string_view key, std::span<const std::string_view> choices,
                          size_t otherwise) const;

 private:
  struct Document;
  RecipeNode(std::shared_ptr<const Document> document, const JsonValue& value, std::string where)
      : document_(std::move(document)), value_(&value), where_(std::move(where)) {}

  // A value inside this one, at the path `where`.
  RecipeNode Inner(const JsonValue& value, const std::string& where) const;

  std::shared_ptr<const Document> document_;
  const JsonValue* value_;  // the document's
  std::string where_;
  std::shared_ptr<const RecipeNode> defaults_;  // may be nullptr
};

// Reads an enumeration whose enumerators are numbered in the order of `names`; `value` stays as it
// is if there is no member. For choices whose default suits every network.
template <class Enum, size_t kCount>
Status ReadEnum(const RecipeNode& node, std::string_view key,
                const std::array<std::string_view, kCount>& names, Enum& value) {
  KINGLET_ASSIGN_OR_RETURN(const size_t index,
                           node.ChoiceOr(key, names, static_cast<size_t>(value)));
  value = static_cast<Enum>(index);
  return {};
}

// Likewise, by the names that NamesOf gives the enumerators.
template <class Enum>
Status ReadEnum(const RecipeNode& node, std::string_view key, Enum& value) {
  return ReadEnum(node, key, NamesOf(value), value);
}

// Like ReadEnum, for a member that must be present, because frameworks differ in it.
template <class Enum, size_t kCount>
Status ReadStated(const RecipeNode& node, std::string_view key,
                  const std::array<std::string_view, kCount>& names, Enum& value) {
  KINGLET_ASSIGN_OR_RETURN(const size_t index, node.ChoiceAt(key, names));
  value = static_cast<Enum>(index);
  return {};
}
template <class Enum>
Status ReadStated(const RecipeNode& node, std::string_view key, Enum& value) {
  return ReadStated(node, key, NamesOf(value), value);
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_NODE_H_
