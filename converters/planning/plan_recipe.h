// A plan as a recipe (docs/RECIPES.md).
#ifndef KINGLET_CONVERTERS_PLANNING_PLAN_RECIPE_H_
#define KINGLET_CONVERTERS_PLANNING_PLAN_RECIPE_H_

#include <string>

#include "converters/planning/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// The JSON of a recipe whose passes do what the plan says, with a newline at its end: prune, code,
// quantise, and, with `calibration`, a text's path as the recipe's folder has it, calibrate. Where
// the plan quantises, the record's other quantisable tensors and codebooks get its rest_bits.
// `base`: path of the recipe that the sensitivities were measured with, whose passes come first;
// may be empty. Errors: those of reading it; KINGLET_INVALID_ARGUMENT if it calibrates already.
Result<std::string> PlanRecipe(const SensitivityRecord& record, const CompressionPlan& plan,
                               const std::string& calibration, const std::string& base);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_PLAN_RECIPE_H_
