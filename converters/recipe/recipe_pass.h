// The passes of a recipe: what is done to a model's tensors after they are loaded, in order.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_PASS_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_PASS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "converters/families/families.h"
#include "converters/recipe/recipe_node.h"
#include "kinglet/status.h"

namespace kinglet {

// The smallest entries become zero (converters/passes/prune.h).
struct PruneStep {
  double fraction = 0;
};
// float32 -> integers and scales (converters/passes/quantise.h).
struct QuantiseStep {
  int bits = 0;
  bool per_tensor = false;  // one scale for a matrix instead of one for each row
};
struct HalveStep {};  // float32 -> float16
// A table becomes coded: its sub-vectors clustered, or fitted under a mapping chosen before; or,
// with `sum`, its rows made of clustered vectors that are added up.
struct CodeStep {
  bool sum = false;
  enum class Mapping : uint8_t { kClustered, kShuffled, kHashed };
  Mapping mapping = Mapping::kClustered;
  uint64_t positions = 1;
  // Sub-vectors: all in one pool, in pools of so many for each position, or in all pools together.
  enum class Pools : uint8_t { kOne, kEach };
  Pools pools = Pools::kEach;
  uint64_t sub_vectors = 0;  // in all pools together
  uint64_t seed = 1;
  uint64_t iterations = 25, restarts = 1;
  uint64_t sweeps = 8;  // of sums (converters/passes/summed_codes.h)
};
// A table becomes a thinner one and a projection, or takes the second factor into the projection it
// has. Tables of the embedding, of tails, and of a softmax without tails.
struct LowRankStep {
  std::optional<uint64_t> rank;
  double error = 0;  // where no rank is given
};
// Activation quantisers from a text (converters/passes/calibrate.h); the last pass, for it runs the
// model as the file will have it.
struct CalibrateStep {
  std::string text;
  int bits = 0;
};

struct PassRecipe {
  std::variant<PruneStep, QuantiseStep, HalveStep, CodeStep, LowRankStep, CalibrateStep> step;
  // Names of the model's tensors; * stands for any text. Empty: those that the training code prunes
  // or quantises, for the passes that do so.
  std::vector<std::string> tensors;
};

Result<PassRecipe> ParsePass(const RecipeNode& node);

// Whether `name` is what `pattern` says, where * stands for any text, also for none.
bool MatchesPattern(std::string_view pattern, std::string_view name);

struct PassSurroundings {
  std::string folder;  // from which files are found
  size_t threads = 1;
  std::function<void(const std::string& text)> progress;  // as ConvertOptions::progress
};

// Applies the passes; to calibrate is left to LoadedModel::calibration. What each did to each
// tensor is noted for the user: error, bytes, ratio. Errors: KINGLET_INVALID_ARGUMENT naming the
// pass and tensor, and those of the passes.
Status ApplyRecipePasses(const std::vector<PassRecipe>& passes, const PassSurroundings& around,
                         LoadedModel& model);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_PASS_H_
