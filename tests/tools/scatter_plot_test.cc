// The picture of `kinglet table --plot`: its places, read back from the SVG.
#include "tools/report/scatter_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace kinglet {
namespace {

struct Circle {
  std::string style;
  double x = 0, y = 0;
};

std::vector<Circle> Circles(const std::string& svg) {
  static const std::regex kCircle("<circle class=\"(\\w+)\" cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  std::vector<Circle> circles;
  for (std::sregex_iterator at(svg.begin(), svg.end(), kCircle), end; at != end; ++at) {
    circles.push_back({(*at)[1], std::stod((*at)[2]), std::stod((*at)[3])});
  }
  return circles;
}

// Places of the numbers below the picture (by x) or left of it (by y).
std::map<double, double> Ticks(const std::string& svg, const std::string& style, bool across) {
  const std::regex tick("<text class=\"note " + style +
                        "\" x=\"([0-9.]+)\" y=\"([0-9.]+)\">([0-9.e+-]+)</text>");
  std::map<double, double> places;
  for (std::sregex_iterator at(svg.begin(), svg.end(), tick), end; at != end; ++at) {
    places[std::stod((*at)[3])] = std::stod((*at)[across ? 1 : 2]);
  }
  return places;
}

TEST(ScatterPlotTest, PointsStandAtTheirNumbers) {
  // By size: 2, 3, 5; the third is beaten by the second.
  const std::vector<PlotPoint> points = {{"c", 5, 40}, {"a", 2, 50}, {"b", 3, 30}};
  EXPECT_EQ(OnFrontier(points), (std::vector<bool>{false, true, true}));
  const std::string svg = ScatterPlot({"a < b", "MB", "loss"}, points);
  const std::vector<Circle> circles = Circles(svg);
  ASSERT_EQ(circles.size(), 3u);
  EXPECT_EQ(circles[0].style + circles[1].style + circles[2].style, "pointpointother");
  const auto across = Ticks(svg, "middle", true), up = Ticks(svg, "end", false);
  for (const auto& [circle, x] : {std::pair(circles[0], 2.0), {circles[1], 3}, {circles[2], 5}}) {
    ASSERT_EQ(across.count(x), 1u);
    EXPECT_NEAR(circle.x, across.at(x), 0.11);
  }
  EXPECT_NEAR(circles[0].y + 4, up.at(50), 0.11);
  EXPECT_NEAR(circles[1].y + 4, up.at(30), 0.11);
  EXPECT_NE(svg.find("<title>a &lt; b</title>"), std::string::npos);
  EXPECT_NE(svg.find("<path class=\"frontier\" d=\"M"), std::string::npos);
}

TEST(ScatterPlotTest, WideRangesAreLogarithmic) {
  const std::string svg =
      ScatterPlot({"t", "x", "y"}, {{"a", 1, 100}, {"b", 10, 10000}, {"c", 100, 1e6}});
  const std::vector<Circle> circles = Circles(svg);
  ASSERT_EQ(circles.size(), 3u);
  EXPECT_NEAR(circles[1].x - circles[0].x, circles[2].x - circles[1].x, 0.21);
  EXPECT_NEAR(circles[1].y - circles[0].y, circles[2].y - circles[1].y, 0.21);
  EXPECT_EQ(Ticks(svg, "middle", true).count(20), 1u);
}

TEST(ScatterPlotTest, EqualPointsAndLabelsDoNotHideEachOther) {
  std::vector<PlotPoint> points;
  for (const char letter : std::string("abcdefghijkl")) {
    points.push_back({std::string(60, letter), 3, 7});
  }
  const std::string svg = ScatterPlot({"t", "x", "y"}, points);
  EXPECT_EQ(Circles(svg).size(), 12u);
  static const std::regex kLabel("<text class=\"label\" x=\"([0-9.]+)\" y=\"([0-9.]+)\"");
  std::vector<double> places;
  for (std::sregex_iterator at(svg.begin(), svg.end(), kLabel), end; at != end; ++at) {
    EXPECT_GT(std::stod((*at)[1]), 0);
    for (const double other : places) EXPECT_GE(std::fabs(std::stod((*at)[2]) - other), 14.9);
    places.push_back(std::stod((*at)[2]));
  }
  EXPECT_EQ(places.size(), 12u);
}

}  // namespace
}  // namespace kinglet
