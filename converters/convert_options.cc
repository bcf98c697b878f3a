#include "converters/convert_options.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>

#include "converters/output_path.h"
#include "format/encoding.h"
#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

Status RefuseOption(const std::string& option, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", option, expected, found);
}

Status CheckCache(const ConvertOptions& options) {
  if (options.cache_capacity && *options.cache_capacity > kMaxCacheCapacity) {
    return RefuseOption("cache", "at most " + std::to_string(kMaxCacheCapacity),
                        std::to_string(*options.cache_capacity));
  }
  if (options.cache_capacity == 0 && (options.cache_theta || options.cache_lambda)) {
    return RefuseOption("cache", "no theta or lambda with a capacity of 0", "theta or lambda");
  }
  if (options.cache_theta && !(std::isfinite(*options.cache_theta) && *options.cache_theta > 0)) {
    return RefuseOption("cache theta", "a number above 0", NumberText(*options.cache_theta));
  }
  if (options.cache_lambda && !(*options.cache_lambda > 0 && *options.cache_lambda < 1)) {
    return RefuseOption("cache lambda", "a number between 0 and 1",
                        NumberText(*options.cache_lambda));
  }
  return {};
}

// "ranges by mse", for what differs from the framework.
std::string RangesText(const ConvertOptions& options) {
  const size_t by = static_cast<size_t>(options.calibrate_by);
  std::string text = "ranges by " + std::string(kRangeRuleNames[by]);
  if (options.calibrate_by == RangeRule::By::kPercentile) {
    text += " " + NumberText(options.percentile.value_or(RangeRule().percentile));
  }
  return text;
}

}  // namespace

Status CheckQuantisation(const ConvertOptions& options) {
  const auto checked_bits = [](const char* option, std::optional<int> bits) -> Status {
    if (!bits || (*bits >= kMinBits && *bits <= kMaxBits)) return {};
    return RefuseOption(option, "2 to 16", std::to_string(*bits));
  };
  KINGLET_RETURN_IF_ERROR(checked_bits("bits", options.bits));
  KINGLET_RETURN_IF_ERROR(checked_bits("activation-bits", options.activation_bits));
  if (options.scale_by != ScaleBy::kLargest && !options.bits) {
    return RefuseOption("scale-by", "--bits with it", "none");
  }
  if (options.calibration_text.empty()) {
    const char* option = options.round_by == RoundBy::kFeedback            ? "round-by"
                         : options.activation_bits                         ? "activation-bits"
                         : options.calibrate_by != RangeRule::By::kLargest ? "calibrate-by"
                                                                           : nullptr;
    if (option != nullptr) return RefuseOption(option, "--calibrate with it", "none");
  } else if (!options.bits) {
    return RefuseOption("calibrate", "--bits with it", "none");
  }
  if (!options.percentile) return {};
  if (options.calibrate_by != RangeRule::By::kPercentile) {
    return RefuseOption("percentile", "--calibrate-by percentile with it", "none");
  }
  if (*options.percentile > 0 && *options.percentile <= 100) return {};
  return RefuseOption("percentile", "above 0, at most 100", NumberText(*options.percentile));
}

Status CheckCacheRows(const char* option, std::optional<uint32_t> rows) {
  if (!rows || (*rows > 0 && *rows <= kMaxDimension)) return {};
  return RefuseOption(option, "1 to " + std::to_string(kMaxDimension) + " rows",
                      std::to_string(*rows));
}

Status CheckOptions(const ConvertOptions& options) {
  if (options.checkpoint.empty()) return RefuseOption("checkpoint", "a path", "none");
  KINGLET_RETURN_IF_ERROR(CheckQuantisation(options));
  if (options.trust_recipe_paths && options.recipe.empty()) {
    return RefuseOption("trust-recipe-paths", "--recipe with it", "none");
  }
  if (!options.recipe.empty() && !options.family.empty()) {
    return RefuseOption("recipe", "no --family with it", options.family);
  }
  KINGLET_RETURN_IF_ERROR(CheckCacheRows("keep-define", options.define_cache_rows));
  KINGLET_RETURN_IF_ERROR(CheckCacheRows("keep-characters", options.character_cache_rows));
  if (options.character_cache_rows && options.vocabulary.empty()) {
    return RefuseOption("keep-characters",
                        "--vocab FILE with it (fairseq's dict.txt), as the model reads words by "
                        "their bytes",
                        "none");
  }
  if (options.prune && !(*options.prune >= 0 && *options.prune < 1)) {
    return RefuseOption("prune", "a fraction from 0 to below 1", NumberText(*options.prune));
  }
  if (options.golden.empty() != options.ids.empty()) {
    return RefuseOption("golden", "golden values and the ids they belong to",
                        options.golden.empty() ? "ids only" : "golden values only");
  }
  if (!options.segments.empty() && options.golden.empty()) {
    return RefuseOption("segments", "--golden with them", "none");
  }
  if (options.lower_case && options.tokenizer.empty()) {
    return RefuseOption("lowercase", "--tokenizer with it", "none");
  }
  if (!(std::isfinite(options.tolerance) && options.tolerance >= 0)) {
    return RefuseOption("tolerance", "a number from 0", NumberText(options.tolerance));
  }
  KINGLET_RETURN_IF_ERROR(CheckCache(options));
  if (!options.vocabulary.empty() && !options.vocabulary_texts.empty()) {
    return RefuseOption("vocab-from", "no --vocab with it", options.vocabulary);
  }
  std::vector<const std::string*> inputs = {
      &options.checkpoint,       &options.config, &options.vocabulary,
      &options.calibration_text, &options.golden, &options.ids,
      &options.segments,         &options.recipe, &options.tokenizer};
  for (const std::string& path : options.averaged) inputs.push_back(&path);
  for (const std::string& path : options.vocabulary_texts) inputs.push_back(&path);
  return CheckOutputPath("convert", options.output, inputs);
}

ConvertOptions InFloats(ConvertOptions options) {
  const ConvertOptions none;
  options.bits = none.bits;
  options.scale_by = none.scale_by;
  options.round_by = none.round_by;
  options.calibration_text.clear();
  options.activation_bits = none.activation_bits;
  options.calibrate_by = none.calibrate_by;
  options.percentile = none.percentile;
  return options;
}

std::string ShapingOptions(const ConvertOptions& options) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!options.recipe.empty()) {
    add("recipe " + std::filesystem::path(options.recipe).filename().string());
  }
  if (!options.averaged.empty()) {
    add("average of " + std::to_string(options.averaged.size() + 1) + " checkpoints");
  }
  if (options.memory_length) add("mem-len " + std::to_string(*options.memory_length));
  for (const std::string& name : options.ignored_options) add("ignored option " + name);
  if (options.define_cache_rows) {
    add("DeFINE unit kept, " + std::to_string(*options.define_cache_rows) + " rows cached");
  }
  if (options.prune) add("prune " + NumberText(*options.prune));
  if (options.bits) add("bits " + std::to_string(*options.bits));
  if (options.scale_by != ScaleBy::kLargest) add("scales by mse");
  if (options.round_by == RoundBy::kFeedback) add("rounded by feedback");
  if (!options.calibration_text.empty()) add("calibrated");
  if (options.activation_bits) {
    add("activations of " + std::to_string(*options.activation_bits) + " bits");
  }
  if (options.calibrate_by != RangeRule::By::kLargest) add(RangesText(options));
  if (options.cache_capacity) add("cache " + std::to_string(*options.cache_capacity));
  if (options.cache_theta) add("cache theta " + NumberText(*options.cache_theta));
  if (options.cache_lambda) add("cache lambda " + NumberText(*options.cache_lambda));
  return text;
}

}  // namespace kinglet
