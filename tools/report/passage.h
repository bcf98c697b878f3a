// A passage of the text with each word coloured by its loss.
#ifndef KINGLET_TOOLS_REPORT_PASSAGE_H_
#define KINGLET_TOOLS_REPORT_PASSAGE_H_

#include <string>

#include "tools/report/model_report.h"

namespace kinglet {

// The words of the report's passage below a legend of their colours and marks, followed by the
// table that each word shows when it is pointed at, as HTML.
std::string PassageHtml(const ModelReport& report);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_PASSAGE_H_
