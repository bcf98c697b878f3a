// A picture of two costs against each other, as an SVG file of its own with its colours, for light
// and dark pages.
#ifndef KINGLET_TOOLS_REPORT_SCATTER_PLOT_H_
#define KINGLET_TOOLS_REPORT_SCATTER_PLOT_H_

#include <string>
#include <vector>

namespace kinglet {

struct PlotPoint {
  std::string label;  // text, not SVG
  double x = 0, y = 0;
  std::string series = {};  // of all points or of none
};

struct PlotTitles {
  std::string plot, x, y;
};

// Whether no other point is lower in one cost and not higher in the other.
std::vector<bool> OnFrontier(const std::vector<PlotPoint>& points);

// Points on axes that are logarithmic over a range of more than 10, and a line through those of
// the frontier. Points of series have a line for each series and a legend in place of labels.
// REQUIRES: at least one point; coordinates are finite and above 0.
std::string ScatterPlot(const PlotTitles& titles, const std::vector<PlotPoint>& points);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_SCATTER_PLOT_H_
