// Models that the recipes of plans give.
#ifndef KINGLET_TOOLS_PLANNED_MODEL_H_
#define KINGLET_TOOLS_PLANNED_MODEL_H_

#include <memory>
#include <string>

#include "converters/convert.h"
#include "converters/planning/plan_recipe.h"
#include "format/model_file.h"
#include "kinglet/status.h"

namespace kinglet {

// The quantisers of the options, for a recipe at this path.
PlanQuantisers QuantisersOf(const ConvertOptions& convert, const std::string& recipe);

// Converts with the options, in floats, and a recipe; without a recipe the model is unchanged. The
// file, next to `output`, is removed; the open model is returned.
Result<std::shared_ptr<const ModelFile>> PlannedModel(const ConvertOptions& options,
                                                      const std::string& recipe,
                                                      const std::string& output);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PLANNED_MODEL_H_
