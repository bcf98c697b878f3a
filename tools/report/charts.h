// Pictures for the report as SVG that stands in the page. Lengths are in units of a picture 300
// wide, which is about a phone's screen; colours are classes of the page's style.
#ifndef KINGLET_TOOLS_REPORT_CHARTS_H_
#define KINGLET_TOOLS_REPORT_CHARTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/bench_report.h"

namespace kinglet {

struct Bar {
  std::string label, value;  // text, not HTML
  double amount = 0;
  std::optional<double> mark = {};  // a diamond at another amount
};
// Bars from the left below their labels and values. `most`: the amount of the full width. `about`
// describes the picture to people who do not see it. Amounts that are not finite are truncated.
std::string BarChart(std::string_view about, const std::vector<Bar>& bars, double most);

// The percentiles and the mean of a time, and its roofline.
struct TimeRow {
  std::string label, value;
  LatencySummary us;
  std::optional<double> roofline;
};
// Like BarChart: a line from p50 to p99 with a mark for each number. Marks beyond `most` are drawn
// at the end.
std::string TimeChart(std::string_view about, const std::vector<TimeRow>& rows, double most);
// A curve over the ticks of an axis, some of which may be missing.
struct Curve {
  std::string label;
  std::vector<std::optional<double>> points;
};
// Curves from 0 to `most`, over ticks that are equally far apart. The first four differ in colour
// and dashes, the others are faint.
std::string CurveChart(std::string_view about, const std::vector<std::string>& ticks,
                       const std::vector<Curve>& curves, double most);
// The meaning of the first curves' lines, as HTML.
std::string CurveLegend(const std::vector<Curve>& curves);
// The meaning of TimeChart's marks, as HTML.
std::string TimeLegend();

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_CHARTS_H_
