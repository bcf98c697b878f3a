// The losses of a model on a text, and the effect of the neural cache, as parts of the page.
#ifndef KINGLET_TOOLS_REPORT_LOSS_PARTS_H_
#define KINGLET_TOOLS_REPORT_LOSS_PARTS_H_

#include "tools/report/page_part.h"

namespace kinglet {

Part FrequencyPart(Reports reports);  // by frequency rank
Part GapPart(Reports reports);        // by distance to the word's last occurrence
Part CachePart(Reports reports);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_LOSS_PARTS_H_
