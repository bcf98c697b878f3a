#include "tools/report/charts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tools/report/html.h"

namespace kinglet {
namespace {

constexpr double kWidth = 300, kRow = 31, kMargin = 4;
constexpr double kLabelBase = 12, kBarTop = 17, kBarHeight = 8;
// Of a row's label and value together, in a wide font of the page's size for phones.
constexpr size_t kCharacters = 43;

std::string Number(double x) { return Decimal(x, 1); }

// The horizontal position of an amount.
double Place(double amount, double most) {
  const double share = most > 0 ? amount / most : 0;
  return kMargin + (kWidth - 2 * kMargin) * (std::isnan(share) ? 0 : std::clamp(share, 0.0, 1.0));
}

std::string Rectangle(const char* style, double x, double y, double width, double height) {
  return std::string("<rect class=\"") + style + "\" x=\"" + Number(x) + "\" y=\"" + Number(y) +
         "\" width=\"" + Number(width) + "\" height=\"" + Number(height) + "\"/>";
}

std::string Diamond(const char* style, double x, double y, double size) {
  return std::string("<path class=\"") + style + "\" d=\"M" + Number(x) + " " + Number(y - size) +
         "l" + Number(size) + " " + Number(size) + "l" + Number(-size) + " " + Number(size) + "l" +
         Number(-size) + " " + Number(-size) + "z\"/>";
}

std::string Circle(const char* style, double x, double y) {
  return std::string("<circle class=\"") + style + "\" cx=\"" + Number(x) + "\" cy=\"" + Number(y) +
         "\" r=\"4\"/>";
}

std::string Cross(double x, double y) {
  return "<path class=\"cross\" d=\"M" + Number(x - 3.5) + " " + Number(y - 3.5) + "l7 7M" +
         Number(x - 3.5) + " " + Number(y + 3.5) + "l7 -7\"/>";
}

std::string RooflineMark(double x, double y) {
  return Rectangle("roofline", x - 1.5, y - 7, 3, 14);
}

std::string Begin(std::string_view about, size_t rows) {
  const std::string height = Number(static_cast<double>(rows) * kRow + 2);
  return "<svg role=\"img\" aria-label=\"" + HtmlText(about) + "\" viewBox=\"0 0 " +
         Number(kWidth) + " " + height + "\">\n";
}

// The line of text above a row's picture.
std::string Heading(const std::string& label, const std::string& value, double top) {
  const size_t columns = kCharacters - std::min(value.size(), kCharacters - 8);
  const std::string y = Number(top + kLabelBase);
  return "<text x=\"" + Number(kMargin) + "\" y=\"" + y + "\">" +
         HtmlText(Shortened(label, columns)) + "</text><text class=\"value\" x=\"" +
         Number(kWidth - kMargin) + "\" y=\"" + y + "\">" + HtmlText(value) + "</text>";
}

}  // namespace

std::string BarChart(std::string_view about, const std::vector<Bar>& bars, double most) {
  std::string svg = Begin(about, bars.size());
  for (size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double top = static_cast<double>(i) * kRow;
    svg += Heading(bar.label, bar.value, top);
    svg += Rectangle("track", kMargin, top + kBarTop, kWidth - 2 * kMargin, kBarHeight);
    svg += Rectangle("bar", kMargin, top + kBarTop, Place(bar.amount, most) - kMargin, kBarHeight);
    if (bar.mark) {
      svg += Diamond("mark", Place(*bar.mark, most), top + kBarTop + kBarHeight / 2, 5.5);
    }
    svg += "\n";
  }
  return svg + "</svg>";
}

std::string TimeChart(std::string_view about, const std::vector<TimeRow>& rows, double most) {
  std::string svg = Begin(about, rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [label, value, us, roofline] = rows[i];
    const double top = static_cast<double>(i) * kRow, middle = top + kBarTop + kBarHeight / 2;
    const double low = Place(us.p50, most), high = Place(us.p99, most);
    svg += Heading(label, value, top);
    svg += Rectangle("track", kMargin, middle - 1, kWidth - 2 * kMargin, 2);
    svg += Rectangle("bar", low, middle - 1.5, high - low, 3);
    if (roofline) svg += RooflineMark(Place(*roofline, most), middle);
    svg += Diamond("mark", high, middle, 5) + Circle("ring", Place(us.p90, most), middle);
    svg += Circle("bar", low, middle) + Cross(Place(us.mean, most), middle) + "\n";
  }
  return svg + "</svg>";
}

namespace {

constexpr size_t kToldCurves = 4;  // curves with a line style of their own
// Of a picture of curves: its height, and where its axes are.
constexpr double kPlotHeight = 170, kPlotLeft = 34, kPlotTop = 14, kPlotBase = 148;

std::string LineStyle(size_t curve) {
  return "curve c" + (curve < kToldCurves ? std::to_string(curve) : std::string("x"));
}

std::string TextAt(const char* anchor, double x, double y, const std::string& text) {
  return "<text text-anchor=\"" + std::string(anchor) + "\" x=\"" + Number(x) + "\" y=\"" +
         Number(y) + "\">" + HtmlText(text) + "</text>";
}

}  // namespace

std::string CurveChart(std::string_view about, const std::vector<std::string>& ticks,
                       const std::vector<Curve>& curves, double most) {
  const double step = (kWidth - kPlotLeft - 3 * kMargin) / static_cast<double>(ticks.size());
  const auto across = [&](size_t tick) {
    return kPlotLeft + (static_cast<double>(tick) + 0.5) * step;
  };
  const auto up = [&](double value) {
    return kPlotBase - (kPlotBase - kPlotTop) * (most > 0 ? std::clamp(value / most, 0.0, 1.0) : 0);
  };
  std::string svg = "<svg role=\"img\" aria-label=\"" + HtmlText(about) + "\" viewBox=\"0 0 " +
                    Number(kWidth) + " " + Number(kPlotHeight) + "\">\n";
  svg += Rectangle("track", kPlotLeft, kPlotBase, kWidth - kPlotLeft - kMargin, 1);
  svg += Rectangle("track", kPlotLeft, kPlotTop, kWidth - kPlotLeft - kMargin, 1);
  svg += TextAt("end", kPlotLeft - 3, kPlotBase + 3, "0");
  constexpr int kDigits = 3;
  svg += TextAt("end", kPlotLeft - 3, kPlotTop + 3, Decimal(most, most < 1 ? kDigits : 1));
  // Words that would touch their neighbours are omitted.
  constexpr double kLeast = 34;
  const auto every = static_cast<size_t>(std::ceil(kLeast / step));
  for (size_t i = 0; i < ticks.size(); i += every) {
    svg += TextAt("middle", across(i), kPlotBase + 14, ticks[i]);
  }
  // The first curves are drawn last, above the others.
  for (size_t i = curves.size(); i-- > 0;) {
    std::string path, move = "M";
    for (size_t tick = 0; tick < curves[i].points.size(); ++tick) {
      const std::optional<double>& point = curves[i].points[tick];
      if (!point || !std::isfinite(*point)) continue;
      path += move + Number(across(tick)) + " " + Number(up(*point));
      move = "L";
      if (i < kToldCurves)
        svg += Circle(("dot d" + std::to_string(i % 2)).c_str(), across(tick), up(*point));
    }
    if (!path.empty()) svg += "<path class=\"" + LineStyle(i) + "\" d=\"" + path + "\"/>\n";
  }
  return svg + "</svg>";
}

std::string CurveLegend(const std::vector<Curve>& curves) {
  std::string html = "<p class=\"legend\">";
  for (size_t i = 0; i < std::min(curves.size(), kToldCurves); ++i) {
    html += "<span><svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 16 16\"><path class=\"" +
            LineStyle(i) + "\" d=\"M0 8L16 8\"/></svg>" + HtmlText(Shortened(curves[i].label, 36)) +
            "</span> ";
  }
  if (curves.size() > kToldCurves) html += "<span>faint: the other tensors</span>";
  return html + "</p>";
}

std::string TimeLegend() {
  const auto entry = [](const std::string& mark, const char* name) {
    return "<span><svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 16 16\">" + mark +
           "</svg>" + name + "</span> ";
  };
  return "<p class=\"legend\">" + entry(RooflineMark(8, 8), "roofline") +
         entry(Circle("bar", 8, 8), "p50") + entry(Circle("ring", 8, 8), "p90") +
         entry(Diamond("mark", 8, 8, 5), "p99") + entry(Cross(8, 8), "mean") + "</p>";
}

}  // namespace kinglet
