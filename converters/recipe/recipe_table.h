// Reads a recipe's table from a checkpoint: as dense values, or as codes and a codebook.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_TABLE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converters/network/network.h"
#include "converters/passes/coded_table.h"
#include "converters/recipe/recipe.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

struct RecipeTable {
  Shape shape;               // [words, columns]
  std::vector<float> dense;  // [words, columns]; empty of a coded table
  std::optional<CodedTable> coded;
  std::optional<uint64_t> seed;   // of hashed codes, which `coded` does not store
  std::vector<float> projection;  // [width, columns], of KD codes with a dense layer; else empty
  std::string note;               // for the user; may be empty
};

// Codes are taken from the checkpoint, or computed from what training left (DPQ, logits); a DeFINE
// unit becomes a dense table. Errors: KINGLET_INVALID_CHECKPOINT naming the tensor, and those of
// the passes that make codes and tables. REQUIRES: threads >= 1.
Result<RecipeTable> MakeTable(const TableRecipe& recipe, const Network& network, size_t threads);

// A table in a network.
struct AddedTable {
  TensorId id;
  std::optional<TensorId> projection;  // [width, columns], of KD codes with a dense layer
  uint32_t words;
};
// Makes the table and adds it. `folded`: a projection of the table's own is multiplied into its
// codebook, because the block that reads the table has no projection, or another one. Errors: those
// of MakeTable and CheckWords.
Result<AddedTable> AddTable(const std::string& name, const TableRecipe& recipe, bool folded,
                            size_t threads, Network& network);

// Refuses more words than a model may have.
Status CheckWords(const std::string& where, uint64_t words);

// Every row as float32: [words, columns], or, if the table has a projection, [words, width].
std::vector<float> FullTable(const RecipeTable& table);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_TABLE_H_
