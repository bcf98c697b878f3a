// A recipe: which blocks a model has, which of a checkpoint's tensors they are made of, and which
// passes follow, in order. It serves checkpoints whose names no family knows, and families that
// write one from a checkpoint's own configuration. docs/RECIPES.md is the manual of the JSON.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "converters/passes/define/define_weights.h"
#include "converters/passes/dpq.h"
#include "converters/recipe/recipe_node.h"
#include "converters/recipe/recipe_pass.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// A tensor of the checkpoint or a part of it: rows and columns are cut out first (of a vector,
// columns), then comes the transposition.
struct TensorRef {
  struct Range {
    uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  std::string name;
  std::optional<Range> rows, columns;
  bool transpose = false;
  bool operator==(const TensorRef&) const = default;
};

// --- tables: a vector for each word ---

struct DenseRecipe {
  TensorRef values;  // [words, width]
};

// Rows of a codebook that a position may choose from.
struct PoolsRecipe {
  enum class Kind : uint8_t { kOne, kEach, kSizes };
  Kind kind = Kind::kOne;
  std::vector<uint32_t> sizes;  // kEach: an equal share of the codebook for each position
};

// Codes that the checkpoint has, as logits of choices if `logits`.
struct CodesRecipe {
  Combine combine = Combine::kConcatenate;
  PoolsRecipe pools;
  TensorRef codebook;  // [.., length]; all dimensions but the last count sub-vectors
  TensorRef codes;     // [words, D], or [words, D, choices]
  bool logits = false;
  bool absolute = false;  // codes are rows of the codebook, not places in their pools
};

// Codes that are computed from a seed (format/hashed_codes.h).
struct HashedRecipe {
  Combine combine = Combine::kConcatenate;
  PoolsRecipe pools;
  TensorRef codebook;
  uint64_t words = 0, positions = 0, seed = 0;
};

struct DpqRecipe {
  DpqTraining::Response response = DpqTraining::Response::kDot;
  DpqTraining::BatchNorm batch_norm = DpqTraining::BatchNorm::kPerChoice;
  double epsilon = 1e-3;
  bool additive = false;
  uint64_t positions = 0;
  TensorRef query, keys;  // [words, D * key length], [D or 1, K, key length]
  std::optional<TensorRef> values, mean, variance;
};

// KD codes whose mean goes through a dense layer; without one they are CodesRecipe.
struct KdRecipe {
  CodesRecipe codes;
  TensorRef kernel;  // [width, length]
  std::optional<TensorRef> bias, gain, offset, mean, variance;
  double epsilon = 1e-3;
};

struct TableRecipe;
// A DeFINE unit.
struct DefineRecipe {
  struct Band {
    std::vector<TableRecipe> table;  // one
    std::optional<TensorRef> projection;
    double scale = 1;
  };
  struct Layer {
    DefineLayer layer;  // without its widths, which the tensors tell
    DefineLayout layout = DefineLayout::kInOut;
    TensorRef weight;
    std::optional<TensorRef> bias, norm_gain, norm_offset;
  };
  std::vector<Band> map;
  double map_scale = 1;
  uint64_t entry_layers = 0;
  std::vector<Layer> layers;
  // The unit stays in the model, and a stream keeps so many rows that it made. None: the unit is
  // computed for every word when the model is converted.
  std::optional<uint64_t> cache_rows;
};

struct TableRecipe {
  std::variant<DenseRecipe, CodesRecipe, HashedRecipe, DpqRecipe, KdRecipe, DefineRecipe> form;
};

// --- blocks ---

struct EmbeddingRecipe {
  struct Bin {
    TableRecipe table;
    std::optional<TensorRef> projection;  // [width, columns of the table]
  };
  double scale = 1;
  std::vector<Bin> bins;
};

struct RecurrentRecipe {
  struct Layer {
    TensorRef input_weight;
    std::optional<TensorRef> input_bias, recurrent_weight, recurrent_bias;
  };
  RecurrentCell cell = RecurrentCell::kLstm;
  std::vector<Layer> layers;
};

struct SoftmaxRecipe {
  struct Part {
    TableRecipe table;
    std::optional<TensorRef> projection;  // [columns of the table, width]
    std::optional<TensorRef> bias;        // [words]
  };
  std::optional<Part> head;  // none: every word is in a tail
  std::optional<TensorRef> cluster_weight, cluster_bias;
  bool reversed = false;  // the last cluster row is the first tail's
  // Where the head has a projection: cluster rows read the hidden state itself.
  bool clusters_read_hidden = false;
  std::vector<Part> tails;
};

// Batch normalisation with its trained statistics.
struct BatchNormRecipe {
  std::optional<TensorRef> gain, offset;  // none: 1 and 0
  TensorRef mean, variance;
  double epsilon = 1e-3;
};

// Classes of a list of words (format/blocks.h, BagClassifier).
struct ClassifierRecipe {
  struct Hidden {
    BatchNormRecipe input_norm, output_norm;
    TensorRef weight;  // [units, features]
    std::optional<TensorRef> bias;
  };
  std::optional<uint64_t> padding;
  bool max_pool = false;
  std::optional<Hidden> hidden;
  TensorRef weight;  // [classes, units or features]
  std::optional<TensorRef> bias;
};

struct CacheRecipe {
  uint64_t capacity = 0;
  double theta = 0, lambda = 0;
  CacheStart start = CacheStart::kFirstPair;
};

struct Recipe {
  std::string folder;  // of the recipe's file; passes find their files from there
  std::map<std::string, std::string> sources;  // name -> file beside the checkpoint
  // Blocks: an embedding, an embedding and a classifier, or an embedding, recurrent layers, a
  // softmax and perhaps a cache; or a family that names them.
  std::string family;
  // DeFINE units that the family's network has in place of tables, by the names of these.
  std::map<std::string, TableRecipe> tables;
  std::optional<EmbeddingRecipe> embedding;
  std::optional<RecurrentRecipe> recurrent;
  std::optional<SoftmaxRecipe> softmax;
  std::optional<CacheRecipe> cache;
  std::optional<ClassifierRecipe> classifier;
  std::vector<PassRecipe> passes;
  // Names of tensors that are left out on purpose; * stands for any text.
  std::vector<std::string> unused;
  // Every tensor that the blocks or the tables name.
  std::vector<std::string> references;
};

// Errors: KINGLET_INVALID_ARGUMENT naming the place in the JSON.
Result<Recipe> ParseRecipe(const RecipeNode& root);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_H_
