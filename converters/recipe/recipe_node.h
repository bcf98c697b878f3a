// A value of a recipe's JSON and where it stands, so that every refusal names the place.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_NODE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_NODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Cheap to copy; the document lives as long as any of its nodes. Errors of all functions:
// KINGLET_INVALID_ARGUMENT, "recipe: FILE, /embedding/bins/0: expected .., found ..".
class RecipeNode {
 public:
  // The root of the document in a file, or in a text that messages call `source`. Errors: also
  // KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
  static Result<RecipeNode> Read(const std::string& path);
  static Result<RecipeNode> Parse(const std::string& source, std::string_view text);

  Status Refuse(const std::string& expected, const std::string& found) const;
  // What the value is, for `found`: "a number", "\"lstm\"".
  std::string Outline() const;

  bool IsText() const;
  bool IsArray() const;
  Result<std::string> Text() const;
  Result<double> Number() const;
  Result<uint64_t> Count() const;  // an integer from 0
  Result<bool> Truth() const;
  Result<std::vector<RecipeNode>> Items() const;  // of an array

  // Of an object, which the value must be.
  Status CheckKeys(std::initializer_list<std::string_view> known) const;
  Result<std::vector<std::string>> Keys() const;
  std::optional<RecipeNode> Find(std::string_view key) const;
  Result<RecipeNode> Get(std::string_view key) const;
  // The member, or `otherwise` where there is none.
  Result<double> NumberOr(std::string_view key, double otherwise) const;
  Result<uint64_t> CountOr(std::string_view key, uint64_t otherwise) const;
  Result<bool> TruthOr(std::string_view key, bool otherwise) const;
  // The number of the member's text in `choices`; `otherwise` where there is no member.
  Result<size_t> ChoiceOr(std::string_view key, std::span<const std::string_view> choices,
                          size_t otherwise) const;
  // The one choice that the value's text is.
  Result<size_t> Choice(std::span<const std::string_view> choices) const;

 private:
  using Document = std::shared_ptr<const nlohmann::json>;
  RecipeNode(Document document, const nlohmann::json* value, std::string source, std::string where)
      : document_(std::move(document)),
        value_(value),
        source_(std::move(source)),
        where_(std::move(where)) {}

  Document document_;
  const nlohmann::json* value_;
  std::string source_, where_;
};

// The enumerator of a member, by the order of its names; without the member `value` stays.
template <class Enum, size_t kCount>
Status ReadEnum(const RecipeNode& node, std::string_view key,
                const std::array<std::string_view, kCount>& names, Enum& value) {
  KINGLET_ASSIGN_OR_RETURN(const size_t index,
                           node.ChoiceOr(key, names, static_cast<size_t>(value)));
  value = static_cast<Enum>(index);
  return {};
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_NODE_H_
