#include "tools/report/scatter_plot.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numeric>

#include "tools/report/html.h"

namespace kinglet {
namespace {

constexpr double kWidth = 720, kHeight = 440;
constexpr double kLeft = 64, kRight = 696, kTop = 56, kBottom = 384;
constexpr double kLetter = 7.2;  // width of a letter in a wide font
constexpr double kLine = 15;     // height of a line of text
constexpr size_t kLabelLetters = 36;

constexpr const char* kStyle = R"(<style>
.page{fill:#fff;stroke:#d0d7de}text{fill:#1f2328;font:13px system-ui,sans-serif}
.title{font-size:16px;font-weight:600}.note{fill:#59636e;font-size:12px}
.label{stroke:#fff;stroke-width:4px;paint-order:stroke;stroke-linejoin:round}
.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#d0d7de}
.point{fill:#0a7d4f}.other{fill:none;stroke:#59636e;stroke-width:1.5}
.frontier{fill:none;stroke:#0a7d4f;stroke-width:2}
@media (prefers-color-scheme:dark){.page{fill:#0d1117;stroke:#3d444d}text{fill:#f0f6fc}
.label{stroke:#0d1117}.note{fill:#a0a9b4}.grid{stroke:#3d444d}.point{fill:#3fb97f}
.other{stroke:#a0a9b4}.frontier{stroke:#3fb97f}}
</style>
)";

// The place of a coordinate between the ends of an axis.
class Axis {
 public:
  Axis(const std::vector<double>& values, double from, double to) : from_(from), to_(to) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    logarithmic_ = *high > 10 * *low;
    low_ = Scaled(*low);
    high_ = Scaled(*high);
    constexpr double kMargin = 0.08;
    const double margin = high_ > low_ ? kMargin * (high_ - low_) : kMargin * std::fabs(low_);
    low_ -= margin;
    high_ += margin;
    if (high_ == low_) ++high_;
  }
  double Place(double value) const {
    return from_ + (to_ - from_) * (Scaled(value) - low_) / (high_ - low_);
  }
  // Round numbers on the axis: of 1, 2 and 5 times powers of ten.
  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    if (logarithmic_) {
      for (double power = std::floor(low_); power <= high_; ++power) {
        for (const double factor : {1.0, 2.0, 5.0}) AddTick(factor * std::pow(10, power), ticks);
      }
      return ticks;
    }
    constexpr double kMost = 7;
    double step = std::pow(10, std::floor(std::log10((high_ - low_) / kMost)));
    while ((high_ - low_) / step > kMost) step *= std::lround(step / Power(step)) == 2 ? 2.5 : 2;
    for (double i = std::ceil(low_ / step); i * step <= high_; ++i) AddTick(i * step, ticks);
    return ticks;
  }

 private:
  static double Power(double step) { return std::pow(10, std::floor(std::log10(step * 1.001))); }
  double Scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }
  void AddTick(double value, std::vector<double>& ticks) const {
    if ((value > 0 || !logarithmic_) && Scaled(value) >= low_ && Scaled(value) <= high_) {
      ticks.push_back(value);
    }
  }

  double from_, to_, low_ = 0, high_ = 0;
  bool logarithmic_ = false;
};

std::string Tick(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", std::fabs(value) < 1e-12 ? 0 : value);
  return text;
}

std::string At(double number) { return Decimal(number, 1); }

std::string Words(const char* style, double x, double y, const std::string& text) {
  return std::string("<text class=\"") + style + "\" x=\"" + At(x) + "\" y=\"" + At(y) + "\">" +
         HtmlText(text) + "</text>\n";
}

std::string GridLine(double x1, double y1, double x2, double y2) {
  return "<line class=\"grid\" x1=\"" + At(x1) + "\" y1=\"" + At(y1) + "\" x2=\"" + At(x2) +
         "\" y2=\"" + At(y2) + "\"/>\n";
}

// A label's place on the picture.
struct Place {
  double left = 0, right = 0, middle = 0;

  bool Touches(const Place& other) const {
    return left < other.right && other.left < right && std::fabs(middle - other.middle) < kLine;
  }
};

// Next to the point, moved up or down where another label is.
Place PlaceLabel(double x, double y, size_t letters, const std::vector<Place>& taken) {
  constexpr double kGap = 9;
  const double width = kLetter * static_cast<double>(letters);
  Place place{x + kGap, x + kGap + width, y};
  if (place.right > kRight) place = {x - kGap - width, x - kGap, y};
  for (int step = 0; step < 40; ++step) {
    const int lines = (step + 1) / 2;
    const double moved = kLine * (step % 2 == 0 ? -lines : lines);
    place.middle = y + moved;
    const bool inside = place.middle > kTop - kLine && place.middle < kBottom;
    const auto touches = [&](const Place& other) { return place.Touches(other); };
    if (inside && std::none_of(taken.begin(), taken.end(), touches)) return place;
  }
  place.middle = y;
  return place;
}

}  // namespace

std::vector<bool> OnFrontier(const std::vector<PlotPoint>& points) {
  std::vector<bool> on(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const PlotPoint& point = points[i];
    on[i] = std::none_of(points.begin(), points.end(), [&](const PlotPoint& other) {
      return other.x <= point.x && other.y <= point.y && (other.x < point.x || other.y < point.y);
    });
  }
  return on;
}

std::string ScatterPlot(const PlotTitles& titles, const std::vector<PlotPoint>& points) {
  std::vector<double> xs, ys;
  for (const PlotPoint& point : points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
  }
  const Axis across(xs, kLeft, kRight), up(ys, kBottom, kTop);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + At(kWidth) + " " +
                    At(kHeight) + "\" width=\"" + At(kWidth) + "\" height=\"" + At(kHeight) +
                    "\" role=\"img\">\n<title>" + HtmlText(titles.plot) + "</title>\n" + kStyle +
                    "<rect class=\"page\" x=\".5\" y=\".5\" width=\"" + At(kWidth - 1) +
                    "\" height=\"" + At(kHeight - 1) + "\" rx=\"6\"/>\n";
  svg += Words("title", kLeft / 2, 30, titles.plot);
  for (const double tick : across.Ticks()) {
    svg += GridLine(across.Place(tick), kTop, across.Place(tick), kBottom);
    svg += Words("note middle", across.Place(tick), kBottom + kLine + 2, Tick(tick));
  }
  for (const double tick : up.Ticks()) {
    svg += GridLine(kLeft, up.Place(tick), kRight, up.Place(tick));
    svg += Words("note end", kLeft - 6, up.Place(tick) + 4, Tick(tick));
  }
  svg += Words("note middle", (kLeft + kRight) / 2, kBottom + 40, titles.x);
  svg += Words("note", kLeft / 2, 48, titles.y);

  const std::vector<bool> frontier = OnFrontier(points);
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return points[a].x < points[b].x; });
  std::string path, labels;
  std::vector<Place> taken;
  for (const size_t i : order) {
    const double x = across.Place(points[i].x), y = up.Place(points[i].y);
    if (frontier[i]) path += (path.empty() ? "M" : "L") + At(x) + " " + At(y);
    labels += std::string("<circle class=\"") + (frontier[i] ? "point" : "other") + "\" cx=\"" +
              At(x) + "\" cy=\"" + At(y) + "\" r=\"5\"/>\n";
    const std::string label = Shortened(points[i].label, kLabelLetters);
    taken.push_back(PlaceLabel(x, y, std::min(label.size(), kLabelLetters), taken));
    labels += Words("label", taken.back().left, taken.back().middle + 4, label);
  }
  svg += "<path class=\"frontier\" d=\"" + path + "\"/>\n";
  return svg + labels + "</svg>\n";
}

}  // namespace kinglet
