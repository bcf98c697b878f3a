// A part of the report's page, which shows something about each model.
#ifndef KINGLET_TOOLS_REPORT_PAGE_PART_H_
#define KINGLET_TOOLS_REPORT_PAGE_PART_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tools/report/charts.h"
#include "tools/report/model_report.h"

namespace kinglet {

// One model, or two side by side.
using Reports = std::span<const ModelReport>;
// The HTML of a part for one model.
using Part = std::function<std::string(const ModelReport&)>;
using BarsOf = std::function<std::vector<Bar>(const ModelReport&)>;

std::string Figure(const std::string& picture, const std::string& below = "");

// The largest finite amount of all models' bars and marks.
double MostOf(Reports reports, const BarsOf& bars_of);
// A picture of each model's bars, all in one scale.
Part Bars(Reports reports, const std::string& about, const BarsOf& bars_of);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_PAGE_PART_H_
