// Applies the passes of a recipe to a loaded model.
#ifndef KINGLET_CONVERTERS_RECIPE_APPLY_PASSES_H_
#define KINGLET_CONVERTERS_RECIPE_APPLY_PASSES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "converters/families/families.h"
#include "converters/passes/input_moments.h"
#include "converters/recipe/recipe_folder.h"
#include "converters/recipe/recipe_pass.h"
#include "kinglet/status.h"

namespace kinglet {

struct PassSurroundings {
  RecipeFolder folder;  // where the passes find the files that they name
  size_t threads = 1;
  std::function<void(const std::string& text)> progress;  // as ConvertOptions::progress
};

// Applies the passes in order. A calibrate pass only sets LoadedModel::calibration, for the caller
// to run once the model is packed. Tensors that are rounded by feedback stay floats, in
// LoadedModel::rounded_with_feedback, until the caller has the moments for RoundWithFeedback. Notes
// report what each pass did to each tensor: error, bytes, ratio. Errors: KINGLET_INVALID_ARGUMENT
// naming pass and tensor, and those of the passes. REQUIRES: all tensors of the model are read.
Status ApplyRecipePasses(const std::vector<PassRecipe>& passes, const PassSurroundings& around,
                         LoadedModel& model);

// Quantises the tensors of LoadedModel::rounded_with_feedback and reports them in notes. Vectors,
// and matrices without moments, are rounded to the nearest integers.
void RoundWithFeedback(const InputMoments& moments, size_t threads, LoadedModel& model);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_APPLY_PASSES_H_
