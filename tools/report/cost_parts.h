// What a model costs, as parts of the report's page: operations, bytes and times.
#ifndef KINGLET_TOOLS_REPORT_COST_PARTS_H_
#define KINGLET_TOOLS_REPORT_COST_PARTS_H_

#include <string>

#include "tools/report/page_part.h"

namespace kinglet {

Part OperationsPart(Reports reports);  // by component
Part TouchedPart(Reports reports);     // bytes that a token touches, by node
Part OwnersPart(Reports reports);      // bytes of the file, by owner
Part LatencyPart(Reports reports);     // time of a token
Part NodeTimesPart(Reports reports);   // by node

// The mode that queries every word's probability.
const BenchResult& FullMode(const ModelReport& report);
// "143.5".
std::string MicrosecondsText(double us);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_COST_PARTS_H_
