// The parsed passes of a recipe: changes of a model's tensors after they are loaded.
// converters/recipe/apply_passes.h applies them.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_PASS_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_PASS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "converters/passes/magnitudes.h"
#include "converters/passes/quantise.h"
#include "converters/recipe/recipe_node.h"
#include "kinglet/status.h"

namespace kinglet {

// The smallest entries become zero (converters/passes/prune.h).
struct PrunePass {
  double fraction = 0;
  // Instead of `fraction`: patterns of tensors and the fraction of each; the first that fits
  // counts.
  std::vector<std::pair<std::string, double>> fractions = {};
  std::string fractions_file =
      {};  // a file that contains `fractions`, found from the recipe's folder
};
// float32 -> integers and scales (converters/passes/quantise.h).
struct QuantisePass {
  int bits = 0;
  bool per_tensor = false;  // a matrix has one scale, not one for each row
  ScaleBy scale_by = ScaleBy::kLargest;
  RoundBy round_by = RoundBy::kNearest;  // kFeedback: of matrices; needs a calibrate pass
};
struct HalvePass {};  // float32 -> float16
// A table becomes coded. Its rows are made of sub-vectors that are concatenated, or of whole
// vectors that are added up (`sum`).
struct CodePass {
  bool sum = false;
  enum class Mapping : uint8_t {
    kClustered,  // product quantisation: k-means finds sub-vectors and codes
    kShuffled,   // codes are drawn first, evenly, then sub-vectors are fitted (slim embedding)
    kHashed,     // like kShuffled, with codes that a hash gives and no file stores (HashedNets)
  };
  Mapping mapping = Mapping::kClustered;  // not of sums
  uint64_t positions = 1;
  enum class Pools : uint8_t {
    kOne,   // all positions choose from the same sub-vectors
    kEach,  // each position has sub-vectors of its own
  };
  Pools pools = Pools::kEach;
  uint64_t sub_vectors = 0;  // in all pools together
  uint64_t seed = 1;
  uint64_t iterations = 25, restarts = 1;  // of k-means
  uint64_t sweeps = 8;                     // of sums (converters/passes/summed_codes.h)
};
// A table becomes a narrower table and a projection; if it has a projection already, the second
// factor is multiplied into that one. For tables of the embedding, of tails, and of a softmax
// without tails.
struct LowRankPass {
  std::optional<uint64_t> rank;
  double error = 0;  // without a rank: the largest relative error
};
// The activation quantisers come from running the model on a text, or have given ranges, as
// training left them (converters/passes/calibrate.h). Must be the last pass, because it runs the
// model as the file will store it.
struct CalibratePass {
  std::string text;  // a file, found from the recipe's folder; empty with ranges
  RangeRule rule;
  std::map<std::string, float> ranges = {};  // by the quantiser's name
};

struct PassRecipe {
  using Form =
      std::variant<PrunePass, QuantisePass, HalvePass, CodePass, LowRankPass, CalibratePass>;
  Form form;
  // Patterns of the tensors' names. Empty: all tensors that the framework prunes (PrunePass) or
  // quantises (QuantisePass); the other passes need patterns.
  std::vector<std::string> tensors;
};

// Patterns and fractions, of an object {pattern: fraction}. Errors, also below:
// KINGLET_INVALID_ARGUMENT naming the location in the JSON.
Result<std::vector<std::pair<std::string, double>>> ParseFractions(const RecipeNode& node);

Result<PassRecipe> ParsePass(const RecipeNode& node);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_PASS_H_
