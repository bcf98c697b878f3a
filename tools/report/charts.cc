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

// Where an amount is on the width.
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

std::string FloorMark(double x, double y) { return Rectangle("floor", x - 1.5, y - 7, 3, 14); }

std::string Begin(std::string_view about, size_t rows) {
  const std::string height = Number(static_cast<double>(rows) * kRow + 2);
  return "<svg role=\"img\" aria-label=\"" + HtmlText(about) + "\" viewBox=\"0 0 " +
         Number(kWidth) + " " + height + "\">\n";
}

// The line of text above a row's picture.
std::string Heading(const std::string& label, const std::string& value, double top) {
  const size_t room = kCharacters - std::min(value.size(), kCharacters - 8);
  const std::string y = Number(top + kLabelBase);
  return "<text x=\"" + Number(kMargin) + "\" y=\"" + y + "\">" + HtmlText(Shortened(label, room)) +
         "</text><text class=\"value\" x=\"" + Number(kWidth - kMargin) + "\" y=\"" + y + "\">" +
         HtmlText(value) + "</text>";
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
    const auto& [label, value, us, floor] = rows[i];
    const double top = static_cast<double>(i) * kRow, middle = top + kBarTop + kBarHeight / 2;
    const double low = Place(us.p50, most), high = Place(us.p99, most);
    svg += Heading(label, value, top);
    svg += Rectangle("track", kMargin, middle - 1, kWidth - 2 * kMargin, 2);
    svg += Rectangle("bar", low, middle - 1.5, high - low, 3);
    if (floor) svg += FloorMark(Place(*floor, most), middle);
    svg += Diamond("mark", high, middle, 5) + Circle("ring", Place(us.p90, most), middle);
    svg += Circle("bar", low, middle) + Cross(Place(us.mean, most), middle) + "\n";
  }
  return svg + "</svg>";
}

std::string TimeLegend() {
  const auto entry = [](const std::string& mark, const char* name) {
    return "<span><svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 16 16\">" + mark +
           "</svg>" + name + "</span> ";
  };
  return "<p class=\"legend\">" + entry(FloorMark(8, 8), "read floor") +
         entry(Circle("bar", 8, 8), "p50") + entry(Circle("ring", 8, 8), "p90") +
         entry(Diamond("mark", 8, 8, 5), "p99") + entry(Cross(8, 8), "mean") + "</p>";
}

}  // namespace kinglet
