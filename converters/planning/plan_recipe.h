// A plan as a recipe (docs/RECIPES.md).
#ifndef KINGLET_CONVERTERS_PLANNING_PLAN_RECIPE_H_
#define KINGLET_CONVERTERS_PLANNING_PLAN_RECIPE_H_

#include <optional>
#include <string>

#include "converters/passes/magnitudes.h"
#include "converters/passes/quantise.h"
#include "converters/planning/plan.h"
#include "kinglet/status.h"

namespace kinglet {

struct PlanQuantisers {
  std::string calibration;  // a text's path, relative to the recipe's folder; empty: no calibration
  ScaleBy scale_by = ScaleBy::kLargest;
  RoundBy round_by = RoundBy::kNearest;
  RangeRule::By range_by = RangeRule::By::kLargest;
  std::optional<double> percentile = std::nullopt;
};

// The JSON of a recipe whose passes carry out the plan, with a newline at its end: prune, code,
// quantise, and, with a calibration text, calibrate, by these quantisers. If the plan quantises,
// the record's other quantisable tensors and codebooks get its rest_bits.
// `base`: path of the recipe that the sensitivities were measured with, whose passes come first;
// may be empty. Errors: those of reading it; KINGLET_INVALID_ARGUMENT if it calibrates already.
Result<std::string> PlanRecipe(const SensitivityRecord& record, const CompressionPlan& plan,
                               const PlanQuantisers& quantisers, const std::string& base);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_PLAN_RECIPE_H_
