// A parsed recipe: which blocks a model has, which tensors of the checkpoint make each block, and
// which passes change the tensors afterwards, in order. Recipes convert checkpoints whose tensor
// names no family knows, and add passes to a family's models. docs/RECIPES.md is the manual of the
// JSON.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "converters/network/tensor_ref.h"
#include "converters/passes/define/define_weights.h"
#include "converters/passes/dpq.h"
#include "converters/recipe/recipe_blocks.h"
#include "converters/recipe/recipe_folder.h"
#include "converters/recipe/recipe_node.h"
#include "converters/recipe/recipe_pass.h"
#include "converters/recipe/recurrent_gates.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// --- tables: a vector for each word ---

struct DenseRecipe {
  TensorRef values;  // [words, width]
};

// How a codebook is divided into pools. The code at a position selects one row of its pool.
struct PoolsRecipe {
  enum class Kind : uint8_t {
    kOne,    // all positions share the entire codebook
    kEach,   // each position has an equal part of the codebook
    kSizes,  // `sizes` rows, position by position
  };
  Kind kind = Kind::kOne;
  std::vector<uint32_t> sizes;  // of kSizes; else empty
};

// Codes that the checkpoint stores: product quantisation, slim embeddings (Li et al. 2018),
// compositional codes (Shu & Nakayama 2018).
struct CodesRecipe {
  Combine combine = Combine::kConcatenate;
  PoolsRecipe pools;
  TensorRef codebook;  // [.., length]; all dimensions but the last count sub-vectors
  // Integers [words, positions]; if `logits`, [words, positions, choices], and the first largest
  // logit is the code.
  TensorRef codes;
  bool logits = false;
  bool absolute = false;  // codes are rows of the codebook, not rows of their pool
};

// Codes computed from a seed (format/hashed_codes.h): HashedNets (Chen et al. 2015), slim
// embeddings with a hashed mapping. The checkpoint stores no codes, so the recipe states how many
// words and positions there are.
struct HashedRecipe {
  Combine combine = Combine::kConcatenate;
  PoolsRecipe pools;
  TensorRef codebook;
  uint64_t words = 0, positions = 0, seed = 0;
};

// Differentiable product quantisation (DPQ: Chen, Li & Sun 2020) as training leaves it: a query
// vector for each word, the key matrix, and the value matrix. Conversion makes codes of them.
struct DpqRecipe {
  DpqTraining::Response response = DpqTraining::Response::kDot;
  DpqTraining::BatchNorm batch_norm = DpqTraining::BatchNorm::kPerChoice;
  double epsilon = 0;     // of the batch norm
  bool additive = false;  // a row is the mean of its sub-vectors, not their concatenation
  uint64_t positions = 0;
  TensorRef query;  // [words, positions * key length]
  TensorRef keys;   // [positions or 1, choices, key length]
  std::optional<TensorRef>
      values;  // [positions or 1, choices, length]; nullopt means the keys (DPQ-VQ)
  std::optional<TensorRef> mean, variance;  // the batch norm's statistics
};

// KD codes (Chen, Min & Sun 2018) whose mean goes through a batch norm and a dense layer. KD codes
// with the mean alone are CodesRecipe.
struct KdRecipe {
  CodesRecipe codes;
  TensorRef kernel;                                       // [width, length]
  std::optional<TensorRef> bias;                          // [width]
  std::optional<TensorRef> gain, offset, mean, variance;  // [length], of the batch norm
  double epsilon = 0;
};

struct TableRecipe;
// A DeFINE unit (Mehta et al. 2020): a Map layer (a table of narrow vectors, perhaps in bands of
// words), then hierarchical group linear transformations (GLT).
struct DefineRecipe {
  struct Band {
    std::vector<TableRecipe> table;  // exactly one; a vector because TableRecipe is incomplete here
    std::optional<TensorRef> projection;  // [map width, columns of the table]
    double scale = 1;
  };
  struct Layer {
    DefineLayer layer;  // without input and output width, which follow from the tensors
    DefineLayout layout = DefineLayout::kInOut;
    TensorRef weight;
    std::optional<TensorRef> bias, norm_gain, norm_offset;
  };
  std::vector<Band> map;
  uint64_t entry_layers = 0;  // the first layers, whose output is what later layers' skips read
  std::vector<Layer> layers;
  // If set, the unit stays in the model, and each stream caches this many of its rows. Otherwise
  // conversion computes the unit for every word, which gives a dense table.
  std::optional<uint64_t> cache_rows;
};

struct TableRecipe {
  std::variant<DenseRecipe, CodesRecipe, HashedRecipe, DpqRecipe, KdRecipe, DefineRecipe> form;

  // The form that each name states; nullptr if the table has another one.
  const DenseRecipe* dense() const { return std::get_if<DenseRecipe>(&form); }
  const HashedRecipe* hashed() const { return std::get_if<HashedRecipe>(&form); }
  const DefineRecipe* define() const { return std::get_if<DefineRecipe>(&form); }
  DefineRecipe* define() { return std::get_if<DefineRecipe>(&form); }
};

// --- blocks ---

struct EmbeddingRecipe {
  // An adaptive input (Baevski & Auli 2019) has several bins of words, by frequency.
  struct Bin {
    TableRecipe table;
    std::optional<TensorRef> projection;  // [width, columns of the table]
  };
  double scale = 1;  // multiplies every vector
  std::vector<Bin> bins;
};

struct RecurrentRecipe {
  struct Layer {
    TensorRef input_weight;
    std::optional<TensorRef> input_bias, recurrent_weight, recurrent_bias;
    std::optional<TensorRef> projection = {};  // of an LSTM
  };
  RecurrentCell cell = RecurrentCell::kLstm;
  RecurrentGates gates;  // of every layer
  std::vector<Layer> layers;
};

// A full softmax is a head alone. An adaptive softmax (Grave et al. 2017) is a head, tails, and a
// cluster row for each tail. A class-factored softmax (Goodman 2001) has tails and cluster rows.
struct SoftmaxRecipe {
  struct Part {
    TableRecipe table;
    std::optional<TensorRef> projection;  // [columns of the table, width]
    std::optional<TensorRef> bias;        // [words]
  };
  std::optional<Part> head;
  std::optional<TensorRef> cluster_weight, cluster_bias;
  bool reversed = false;  // the last cluster row is the first tail's
  // For a head with a projection: cluster rows read the hidden state, not the projected one.
  bool clusters_read_hidden = false;
  std::vector<Part> tails;
};

// Batch normalisation with the statistics that training left.
struct BatchNormRecipe {
  std::optional<TensorRef> gain, offset;  // nullopt means 1 and 0
  TensorRef mean, variance;
  double epsilon = 0;
};

// Classifies a list of words (format/blocks.h, BagClassifier).
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

// A neural cache (Grave, Joulin & Usunier 2017).
struct CacheRecipe {
  uint64_t capacity = 0;  // pairs of hidden state and next word
  double theta = 0, lambda = 0;
  CacheStart start = CacheStart::kFirstPair;
};

// A table, or an entire input, that replaces one of a family's network.
struct TableInPlace {
  EmbeddingRecipe input;  // its scale does not count
  // Replaces the network's factor of every vector.
  std::optional<double> scale;
};

// One of five:
// - a language model: an embedding, recurrent layers or a Transformer, a softmax and perhaps a
//   cache;
// - vectors of words: an embedding, perhaps with a classifier;
// - blocks field by field;
// - a family, which names the blocks itself;
// - passes alone: the blocks come from elsewhere (converters/recipe/recipe_file.h).
struct Recipe {
  RecipeFolder folder;         // the recipe's; passes find their files from there
  RecipeFolder source_folder;  // the checkpoint's, where `sources` are
  // Where the checkpoint stores the network, if the recipe states it (NetworkPlace).
  std::vector<std::string> state_dict;
  std::string prefix;
  std::map<std::string, std::string> sources;  // name -> file, in source_folder
  std::string family;                          // empty: the recipe names no family
  // With a family: replacements of the network's tensors, by the tensor's name, or of its entire
  // input, by the module's name.
  std::map<std::string, TableInPlace> tables;
  std::optional<BlocksRecipe> blocks;  // all blocks, instead of those below
  std::optional<EmbeddingRecipe> embedding;
  std::optional<RecurrentRecipe> recurrent;  // not together with a Transformer
  std::optional<BlocksRecipe> transformer;   // one block
  std::optional<SoftmaxRecipe> softmax;
  std::optional<CacheRecipe> cache;
  std::optional<ClassifierRecipe> classifier;
  // Fed before every text, and the end of every text (ModelDescription).
  std::optional<uint64_t> start_token, end_token;
  std::vector<PassRecipe> passes;
  // Patterns of tensors that the recipe excludes on purpose (MatchesPattern).
  std::vector<std::string> unused;
  // With a family: names of biases that the checkpoint lacks and that are zeros.
  std::vector<std::string> zeros;
  // The names of all tensors that the blocks and tables read, in the order of the JSON.
  std::vector<std::string> references;

  // Whether the recipe describes the network itself.
  bool has_network() const { return blocks || embedding; }
};

// Errors: KINGLET_INVALID_ARGUMENT naming the location in the JSON.
Result<Recipe> ParseRecipe(const RecipeNode& root);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_H_
