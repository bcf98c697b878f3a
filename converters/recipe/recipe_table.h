// A recipe's table as values: dense, or codes and a codebook.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_TABLE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converters/passes/coded_table.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_tensors.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

struct RecipeTable {
  Shape shape;               // [words, columns]
  std::vector<float> dense;  // [words, columns], where it is not coded
  std::optional<CodedTable> coded;
  // Of a coded table whose codes are computed: `coded` has none.
  std::optional<uint64_t> seed;
  // [width, columns], where the form brings one (KD codes with a dense layer).
  std::vector<float> projection;
  std::string note;  // for the user; may be empty
};

// Errors: KINGLET_INVALID_CHECKPOINT naming the tensor, and those of the passes that make codes and
// tables. REQUIRES: threads >= 1.
Result<RecipeTable> MakeTable(const TableRecipe& recipe, const RecipeTensors& tensors,
                              size_t threads);

// Every entry as float32, [words, columns], or [words, width] with a projection of its own.
std::vector<float> FullTable(const RecipeTable& table);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_TABLE_H_
