// The page of `kinglet report`: one HTML file without scripts that loads nothing.
#ifndef KINGLET_TOOLS_REPORT_REPORT_PAGE_H_
#define KINGLET_TOOLS_REPORT_REPORT_PAGE_H_

#include <string>

#include "tools/report/page_part.h"
#include "tools/report/planning_parts.h"

namespace kinglet {

// `input_name` is the text's name. REQUIRES: 1 or 2 reports.
std::string ReportPage(Reports reports, const Planning& planning, const std::string& input_name);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_REPORT_PAGE_H_
