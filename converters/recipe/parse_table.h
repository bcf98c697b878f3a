// The parts of a recipe's JSON that name tensors: references and tables.
#ifndef KINGLET_CONVERTERS_RECIPE_PARSE_TABLE_H_
#define KINGLET_CONVERTERS_RECIPE_PARSE_TABLE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_node.h"
#include "kinglet/status.h"

namespace kinglet {

// "scale", a number that multiplies vectors: the root of the width in Transformers, 1 in other
// networks.
Result<double> ScaleAt(const RecipeNode& node);
// "epsilon", what a batch norm adds to the variance.
Result<double> BatchNormEpsilonAt(const RecipeNode& node);

// Parses references and tables, and appends the name of every tensor to `references`, which must
// outlive the parser. Errors of all functions: KINGLET_INVALID_ARGUMENT naming the location in the
// JSON.
class TableParser {
 public:
  explicit TableParser(std::vector<std::string>& references) : references_(references) {}

  // A reference: a tensor's name, or an object with the key "tensor".
  Result<TensorRef> Ref(const RecipeNode& node);
  Result<TensorRef> Ref(const RecipeNode& node, std::string_view key);
  Result<std::optional<TensorRef>> OptionalRef(const RecipeNode& node, std::string_view key);
  // A reference to a tensor whose name the recipe implies.
  TensorRef Named(std::string name);
  // Sets what stands for "{}" in the names of references, and returns what did; empty: names stay
  // as they are.
  std::string SetNumber(std::string number) { return std::exchange(number_, std::move(number)); }

  Result<TableRecipe> Table(const RecipeNode& node);
  Result<TableRecipe> Table(const RecipeNode& node, std::string_view key);

 private:
  Result<CodesRecipe> Codes(const RecipeNode& node);
  Status ReadCodebookAndCodes(const RecipeNode& node, CodesRecipe& codes);
  Result<HashedRecipe> Hashed(const RecipeNode& node);
  Result<DpqRecipe> Dpq(const RecipeNode& node);
  Result<TableRecipe> Kd(const RecipeNode& node);
  Result<DefineRecipe> Define(const RecipeNode& node);
  Result<DefineRecipe::Band> Band(const RecipeNode& node);
  Result<DefineRecipe::Layer> Layer(const RecipeNode& node);

  std::vector<std::string>& references_;
  std::string number_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_PARSE_TABLE_H_
