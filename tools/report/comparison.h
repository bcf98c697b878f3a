// Two models of a report next to each other: a verdict and the differences.
#ifndef KINGLET_TOOLS_REPORT_COMPARISON_H_
#define KINGLET_TOOLS_REPORT_COMPARISON_H_

#include <array>
#include <optional>
#include <string>

#include "tools/paired_losses.h"
#include "tools/report/page_part.h"

namespace kinglet {

// The second model's loss less the first one's. nullopt if they split the text into different
// numbers of tokens. REQUIRES: 2 reports, here and below.
std::optional<PairedDifference> DifferenceOf(Reports reports);
// A line of JSON with the difference.
std::string ComparisonJson(Reports reports);
// One sentence, as text: the smaller file, what that costs in perplexity, and whether the text
// tells the models apart.
std::string VerdictText(Reports reports, const std::array<std::string, 2>& names);
// The section, as HTML.
std::string ComparisonHtml(Reports reports, const std::array<std::string, 2>& names);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_COMPARISON_H_
