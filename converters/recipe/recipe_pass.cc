#include "converters/recipe/recipe_pass.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "format/encoding.h"
#include "format/limits.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// Names of enumerators, in their order (ReadEnum).
constexpr std::array kMappings = {"clustered"sv, "shuffled"sv, "hashed"sv};
constexpr std::array kPassPools = {"one"sv, "each"sv};
// The names of two values of a bool, false first.
constexpr std::array kScales = {"row"sv, "tensor"sv};
constexpr std::array kPassCombines = {"concatenate"sv, "sum"sv};

// "bits": how many bits each integer has.
Result<int> ReadBits(const RecipeNode& node) {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode bits, node.Get("bits"));
  KINGLET_ASSIGN_OR_RETURN(const uint64_t count, bits.Count());
  if (count < kMinBits || count > kMaxBits) return bits.Refuse("2 to 16", bits.Outline());
  return static_cast<int>(count);
}

Result<double> ReadFraction(const RecipeNode& node, std::string_view key) {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
  KINGLET_ASSIGN_OR_RETURN(const double fraction, member.Number());
  if (!(fraction >= 0 && fraction < 1)) {
    return member.Refuse("at least 0, below 1", member.Outline());
  }
  return fraction;
}

using PassForm = PassRecipe::Form;

Result<PassForm> ParsePrune(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(node.CheckKeys({"pass", "tensors", "fraction", "fractions"}));
  // The fraction of each tensor: an object, or the name of a file that contains one.
  if (const auto fractions = node.Find("fractions")) {
    for (const std::string_view other : {"fraction"sv, "tensors"sv}) {
      if (node.Find(other)) {
        return node.Refuse("\"fractions\" or \"" + std::string(other) + "\"", "both");
      }
    }
    PrunePass pass;
    if (fractions->IsText()) {
      KINGLET_ASSIGN_OR_RETURN(pass.fractions_file, fractions->Text());
    } else {
      KINGLET_ASSIGN_OR_RETURN(pass.fractions, ParseFractions(*fractions));
    }
    return PassForm(std::move(pass));
  }
  // The fraction of the entries that become zero.
  KINGLET_ASSIGN_OR_RETURN(const double fraction, ReadFraction(node, "fraction"));
  PrunePass pass;
  pass.fraction = fraction;
  return PassForm(std::move(pass));
}

Result<PassForm> ParseQuantise(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(
      node.CheckKeys({"pass", "tensors", "bits", "scale", "scale_by", "round_by"}));
  QuantisePass pass;
  KINGLET_ASSIGN_OR_RETURN(pass.bits, ReadBits(node));
  // Whether each row of a matrix has a scale, or the matrix has one.
  KINGLET_ASSIGN_OR_RETURN(const size_t scale, node.ChoiceOr("scale", kScales, 0));
  pass.per_tensor = scale == 1;
  // Whether scales come from the largest entry or by least squared error.
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "scale_by", kScaleByNames, pass.scale_by));
  // Whether each entry is rounded to the nearest integer, or so that products on a text change
  // least.
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "round_by", kRoundByNames, pass.round_by));
  if (pass.per_tensor && pass.round_by == RoundBy::kFeedback) {
    return node.Refuse("\"scale\": \"row\" with \"round_by\": \"feedback\"", "\"tensor\"");
  }
  return PassForm(pass);
}

Result<PassForm> ParseHalf(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(node.CheckKeys({"pass", "tensors"}));
  return PassForm(HalvePass{});
}

Result<PassForm> ParseCode(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(
      node.CheckKeys({"pass", "tensors", "combine", "mapping", "positions", "pools", "sub_vectors",
                      "seed", "iterations", "restarts", "sweeps"}));
  CodePass pass;
  // How the codes are found.
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "mapping", kMappings, pass.mapping));
  // How many codes a row has.
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode positions, node.Get("positions"));
  KINGLET_ASSIGN_OR_RETURN(pass.positions, positions.Count());
  if (pass.positions == 0 || pass.positions > kMaxExtent) {
    return positions.Refuse("1 to " + std::to_string(kMaxExtent), positions.Outline());
  }
  // Whether the positions share their sub-vectors.
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "pools", kPassPools, pass.pools));
  // How many sub-vectors all pools have together.
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode sub_vectors, node.Get("sub_vectors"));
  KINGLET_ASSIGN_OR_RETURN(pass.sub_vectors, sub_vectors.Count());
  const uint64_t least = pass.pools == CodePass::Pools::kEach ? pass.positions : 1;
  if (pass.sub_vectors < least || pass.sub_vectors > kMaxDimension) {
    return sub_vectors.Refuse(std::to_string(least) + " to " + std::to_string(kMaxDimension),
                              sub_vectors.Outline());
  }
  // The seed of k-means, of the shuffled mapping or of the hash.
  KINGLET_ASSIGN_OR_RETURN(pass.seed, node.CountOr("seed", pass.seed));
  // The maximum number of iterations of k-means, and the number of restarts; the best result is
  // kept.
  KINGLET_ASSIGN_OR_RETURN(pass.iterations, node.CountOr("iterations", pass.iterations));
  KINGLET_ASSIGN_OR_RETURN(pass.restarts, node.CountOr("restarts", pass.restarts));
  // Whether the sub-vectors are parts of a row or complete vectors to add up.
  KINGLET_ASSIGN_OR_RETURN(const size_t combine, node.ChoiceOr("combine", kPassCombines, 0));
  pass.sum = combine == 1;
  // For sums: how often every position chooses its code again.
  if (!pass.sum) {
    if (const auto sweeps = node.Find("sweeps")) {
      return sweeps->Refuse("\"sweeps\" only with \"combine\": \"sum\" (delete it, or add that)",
                            sweeps->Outline());
    }
    return PassForm(pass);
  }
  KINGLET_ASSIGN_OR_RETURN(pass.sweeps, node.CountOr("sweeps", pass.sweeps));
  for (const std::string_view other : {"mapping"sv, "pools"sv}) {
    if (node.Find(other)) {
      return node.Refuse("\"combine\": \"sum\" or \"" + std::string(other) + "\"", "both");
    }
  }
  if (pass.sub_vectors % pass.positions != 0) {
    return sub_vectors.Refuse("a multiple of the positions, " + std::to_string(pass.positions),
                              sub_vectors.Outline());
  }
  return PassForm(pass);
}

Result<PassForm> ParseLowRank(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(node.CheckKeys({"pass", "tensors", "rank", "error"}));
  LowRankPass pass;
  // How many columns the narrower table has.
  if (const auto rank = node.Find("rank")) {
    KINGLET_ASSIGN_OR_RETURN(pass.rank, rank->Count());
    if (node.Find("error")) return node.Refuse("\"rank\" or \"error\"", "both");
    return PassForm(pass);
  }
  // The relative error that the smallest sufficient rank may have.
  KINGLET_ASSIGN_OR_RETURN(pass.error, ReadFraction(node, "error"));
  return PassForm(pass);
}

Result<std::map<std::string, float>> ParseRanges(const RecipeNode& node) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> names, node.Keys());
  if (names.empty()) return node.Refuse("a range for each quantiser", "none");
  std::map<std::string, float> ranges;
  for (const std::string& name : names) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode range, node.Get(name));
    KINGLET_ASSIGN_OR_RETURN(const double value, range.Number());
    const auto rounded = static_cast<float>(value);
    if (!(value >= 0 && std::isfinite(rounded))) {
      return range.Refuse("a range of 0 or more, finite in float32", range.Outline());
    }
    ranges.emplace(name, rounded);
  }
  return ranges;
}

Result<PassForm> ParseCalibrate(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(
      node.CheckKeys({"pass", "text", "ranges", "bits", "range_by", "percentile"}));
  CalibratePass pass;
  KINGLET_ASSIGN_OR_RETURN(pass.rule.bits, ReadBits(node));
  // The largest magnitude of each quantiser that a network was trained with.
  if (const auto ranges = node.Find("ranges")) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"pass", "ranges", "bits"}));
    KINGLET_ASSIGN_OR_RETURN(pass.ranges, ParseRanges(*ranges));
    return PassForm(std::move(pass));
  }
  // The file with the text that the model runs on.
  KINGLET_ASSIGN_OR_RETURN(pass.text, node.TextAt("text"));
  // Whether ranges are the largest magnitudes, a percentile of them, or of least squared error.
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "range_by", kRangeRuleNames, pass.rule.by));
  // The percentile: how many percent of the magnitudes lie within a range.
  if (const auto percentile = node.Find("percentile")) {
    if (pass.rule.by != RangeRule::By::kPercentile) {
      return percentile->Refuse("\"percentile\" only with \"range_by\": \"percentile\"",
                                percentile->Outline());
    }
    KINGLET_ASSIGN_OR_RETURN(pass.rule.percentile, percentile->Number());
    if (!(pass.rule.percentile > 0 && pass.rule.percentile <= 100)) {
      return percentile->Refuse("above 0, at most 100", percentile->Outline());
    }
  }
  return PassForm(std::move(pass));
}

struct PassParser {
  std::string_view name;
  Result<PassForm> (*parse)(const RecipeNode& node);
};
constexpr std::array kPassParsers = {
    PassParser{"prune", ParsePrune},      PassParser{"quantise", ParseQuantise},
    PassParser{"half", ParseHalf},        PassParser{"code", ParseCode},
    PassParser{"low_rank", ParseLowRank}, PassParser{"calibrate", ParseCalibrate},
};

}  // namespace

Result<std::vector<std::pair<std::string, double>>> ParseFractions(const RecipeNode& node) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> names, node.Keys());
  if (names.empty()) return node.Refuse("a fraction for each tensor", "none");
  std::vector<std::pair<std::string, double>> fractions;
  for (const std::string& name : names) {
    KINGLET_ASSIGN_OR_RETURN(const double fraction, ReadFraction(node, name));
    fractions.emplace_back(name, fraction);
  }
  return fractions;
}

Result<PassRecipe> ParsePass(const RecipeNode& node) {
  std::array<std::string_view, kPassParsers.size()> names;
  std::transform(kPassParsers.begin(), kPassParsers.end(), names.begin(),
                 [](const PassParser& parser) { return parser.name; });
  // What the pass does.
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode named, node.Get("pass"));
  KINGLET_ASSIGN_OR_RETURN(const size_t index, named.Choice(names));
  PassRecipe pass;
  // Patterns of the tensors that the pass changes.
  if (const auto tensors = node.Find("tensors")) {
    KINGLET_ASSIGN_OR_RETURN(pass.tensors, tensors->Texts());
  }
  KINGLET_ASSIGN_OR_RETURN(pass.form, kPassParsers[index].parse(node));
  return pass;
}

}  // namespace kinglet
