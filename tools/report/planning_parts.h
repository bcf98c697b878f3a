// The measurements of `kinglet sensitivity` and the choices of `kinglet plan`, as sections of the
// report's page.
#ifndef KINGLET_TOOLS_REPORT_PLANNING_PARTS_H_
#define KINGLET_TOOLS_REPORT_PLANNING_PARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "tools/sensitivity_file.h"

namespace kinglet {

// The changes of a tensor in a plan's recipe.
struct PlannedTensor {
  std::string name;  // or a pattern
  std::optional<double> sparsity;
  std::optional<int> bits;
  std::string codes;  // "4 x 64 codes"; may be empty
};

struct Planning {
  std::optional<SensitivityFile> sensitivity;
  std::optional<std::vector<PlannedTensor>> plan;
};

// Reads both files; a path may be empty. Errors: those of ReadSensitivityFile and of reading a
// recipe; KINGLET_INVALID_ARGUMENT for a recipe that changes no tensor.
Result<Planning> ReadPlanning(const std::string& sensitivity, const std::string& plan);

// The sections; "" for missing files.
std::string PlanningHtml(const Planning& planning);
// A line of JSON for each of the two files that exists.
std::string PlanningJson(const Planning& planning);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_PLANNING_PARTS_H_
