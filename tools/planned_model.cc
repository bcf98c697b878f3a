#include "tools/planned_model.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "converters/convert_options.h"

namespace kinglet {
namespace {

// The path of the calibration text relative to the recipe's folder.
std::string CalibrationFrom(const std::string& text, const std::string& recipe) {
  if (text.empty()) return text;
  const std::filesystem::path folder = std::filesystem::absolute(recipe).parent_path();
  return std::filesystem::absolute(text).lexically_proximate(folder).string();
}

}  // namespace

PlanQuantisers QuantisersOf(const ConvertOptions& convert, const std::string& recipe) {
  PlanQuantisers quantisers;
  quantisers.calibration = CalibrationFrom(convert.calibration_text, recipe);
  quantisers.scale_by = convert.scale_by;
  quantisers.round_by = convert.round_by;
  quantisers.range_by = convert.calibrate_by;
  quantisers.percentile = convert.percentile;
  return quantisers;
}

Result<std::shared_ptr<const ModelFile>> PlannedModel(const ConvertOptions& options,
                                                      const std::string& recipe,
                                                      const std::string& output) {
  ConvertOptions convert = InFloats(options);
  if (!recipe.empty()) {
    convert.recipe = recipe;
    convert.trust_recipe_paths = true;  // the recipe was written by this run
  }
  convert.output = output + ".check.kgl";
  KINGLET_RETURN_IF_ERROR(Convert(convert).status());
  Result<std::shared_ptr<ModelFile>> model = ModelFile::Open(convert.output);
  std::error_code ignored;
  std::filesystem::remove(convert.output, ignored);
  if (!model.ok()) return model.status();
  return std::shared_ptr<const ModelFile>(*std::move(model));
}

}  // namespace kinglet
