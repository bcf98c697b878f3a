// The page of `kinglet report`: HTML that needs nothing but itself, no script either.
#ifndef KINGLET_TOOLS_REPORT_REPORT_PAGE_H_
#define KINGLET_TOOLS_REPORT_REPORT_PAGE_H_

#include <span>
#include <string>

#include "tools/report/model_report.h"

namespace kinglet {

// One model, or two side by side. `source` is the text's name. REQUIRES: 1 or 2 reports.
std::string ReportPage(std::span<const ModelReport> reports, const std::string& source);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_REPORT_PAGE_H_
