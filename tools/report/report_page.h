// The page of `kinglet report`: one HTML file without scripts that loads nothing.
#ifndef KINGLET_TOOLS_REPORT_REPORT_PAGE_H_
#define KINGLET_TOOLS_REPORT_REPORT_PAGE_H_

#include <string>

#include "tools/report/page_part.h"
#include "tools/report/planning_parts.h"

namespace kinglet {

// `source` is the text's name. REQUIRES: 1 or 2 reports.
std::string ReportPage(Reports reports, const Planning& planning, const std::string& source);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_REPORT_PAGE_H_
