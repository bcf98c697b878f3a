#include "tools/report/scatter_plot.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numeric>

#include "tools/report/html.h"

namespace kinglet {
namespace {

constexpr double kScatterWidth = 720, kScatterHeight = 440;
constexpr double kScatterLeft = 64, kScatterRight = 696, kScatterTop = 56, kScatterBottom = 384;
constexpr double kScatterLetter = 7.2;  // width of a letter in a wide font
constexpr double kScatterLine = 15;     // height of a line of text
constexpr size_t kScatterLabelLetters = 36;

constexpr const char* kScatterStyle = R"(<style>
.page{fill:#fff;stroke:#d0d7de}text{fill:#1f2328;font:13px system-ui,sans-serif}
.title{font-size:16px;font-weight:600}.note{fill:#59636e;font-size:12px}
.label{stroke:#fff;stroke-width:4px;paint-order:stroke;stroke-linejoin:round}
.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#d0d7de}
.point{fill:#0a7d4f}.other{fill:none;stroke:#59636e;stroke-width:1.5}
.frontier{fill:none;stroke:#0a7d4f;stroke-width:2}
.line{fill:none;stroke-width:1.5}.dashed{stroke-dasharray:5 3}
.c0{stroke:#1f6feb}.c1{stroke:#cf5b00}.c2{stroke:#8250df}.c3{stroke:#bf3989}.c4{stroke:#9a6700}
.c5{stroke:#1b7c83}.c6{stroke:#6e7781}.dot{fill:none;stroke-width:1.5}
.wide{fill:none;stroke:#0a7d4f;stroke-width:7;opacity:.25;stroke-linejoin:round}
@media (prefers-color-scheme:dark){.page{fill:#0d1117;stroke:#3d444d}text{fill:#f0f6fc}
.label{stroke:#0d1117}.note{fill:#a0a9b4}.grid{stroke:#3d444d}.point{fill:#3fb97f}
.other{stroke:#a0a9b4}.frontier,.wide{stroke:#3fb97f}
.c0{stroke:#58a6ff}.c1{stroke:#f0883e}.c2{stroke:#bc8cff}.c3{stroke:#f778ba}.c4{stroke:#d4a72c}
.c5{stroke:#39c5cf}.c6{stroke:#9198a1}}
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
    constexpr double kScatterMargin = 0.08;
    const double margin =
        high_ > low_ ? kScatterMargin * (high_ - low_) : kScatterMargin * std::fabs(low_);
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
struct LabelPlace {
  double left = 0, right = 0, middle = 0;

  bool Touches(const LabelPlace& other) const {
    return left < other.right && other.left < right &&
           std::fabs(middle - other.middle) < kScatterLine;
  }
};

// Next to the point, moved up or down where another label is.
LabelPlace PlaceLabel(double x, double y, size_t letters, const std::vector<LabelPlace>& taken) {
  constexpr double kGap = 9;
  const double width = kScatterLetter * static_cast<double>(letters);
  LabelPlace place{x + kGap, x + kGap + width, y};
  if (place.right > kScatterRight) place = {x - kGap - width, x - kGap, y};
  for (int step = 0; step < 40; ++step) {
    const int lines = (step + 1) / 2;
    const double moved = kScatterLine * (step % 2 == 0 ? -lines : lines);
    place.middle = y + moved;
    const bool inside = place.middle > kScatterTop - kScatterLine && place.middle < kScatterBottom;
    const auto touches = [&](const LabelPlace& other) { return place.Touches(other); };
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

namespace {

// The points of each series with a line, the frontier as a wide one, and a legend.
std::string SeriesOf(const std::vector<PlotPoint>& points, const std::vector<size_t>& order,
                     const Axis& across, const Axis& up, const std::string& frontier) {
  constexpr size_t kColours = 7;
  constexpr double kSample = 26, kLetter = 7;
  std::vector<std::string> names;
  for (const PlotPoint& point : points) {
    if (std::find(names.begin(), names.end(), point.series) == names.end()) {
      names.push_back(point.series);
    }
  }
  size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  const double left = kScatterRight - kSample - 6 - kLetter * static_cast<double>(longest);
  std::string svg = "<path class=\"wide\" d=\"" + frontier + "\"/>\n";
  for (size_t s = 0; s < names.size(); ++s) {
    const std::string colour = "c" + std::to_string(s % kColours);
    const std::string style = "line " + colour + (s >= kColours ? " dashed" : "");
    std::string path, dots;
    for (const size_t i : order) {
      if (points[i].series != names[s]) continue;
      const std::string x = At(across.Place(points[i].x)), y = At(up.Place(points[i].y));
      path += (path.empty() ? "M" : "L") + x + " " + y;
      dots +=
          "<circle class=\"dot " + colour + "\" cx=\"" + x + "\" cy=\"" + y + "\" r=\"3.5\"/>\n";
    }
    svg += "<path class=\"" + style + "\" d=\"" + path + "\"/>\n" + dots;
    const double y = kScatterTop + 8 + kScatterLine * static_cast<double>(s);
    svg += "<path class=\"" + style + "\" d=\"M" + At(left) + " " + At(y) + "h" + At(kSample) +
           "\"/>\n" + Words("note", left + kSample + 6, y + 4, names[s]);
  }
  return svg;
}

}  // namespace

std::string ScatterPlot(const PlotTitles& titles, const std::vector<PlotPoint>& points) {
  std::vector<double> xs, ys;
  for (const PlotPoint& point : points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
  }
  const Axis across(xs, kScatterLeft, kScatterRight), up(ys, kScatterBottom, kScatterTop);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + At(kScatterWidth) +
                    " " + At(kScatterHeight) + "\" width=\"" + At(kScatterWidth) + "\" height=\"" +
                    At(kScatterHeight) + "\" role=\"img\">\n<title>" + HtmlText(titles.plot) +
                    "</title>\n" + kScatterStyle +
                    "<rect class=\"page\" x=\".5\" y=\".5\" width=\"" + At(kScatterWidth - 1) +
                    "\" height=\"" + At(kScatterHeight - 1) + "\" rx=\"6\"/>\n";
  svg += Words("title", kScatterLeft / 2, 30, titles.plot);
  for (const double tick : across.Ticks()) {
    svg += GridLine(across.Place(tick), kScatterTop, across.Place(tick), kScatterBottom);
    svg += Words("note middle", across.Place(tick), kScatterBottom + kScatterLine + 2, Tick(tick));
  }
  for (const double tick : up.Ticks()) {
    svg += GridLine(kScatterLeft, up.Place(tick), kScatterRight, up.Place(tick));
    svg += Words("note end", kScatterLeft - 6, up.Place(tick) + 4, Tick(tick));
  }
  svg += Words("note middle", (kScatterLeft + kScatterRight) / 2, kScatterBottom + 40, titles.x);
  svg += Words("note", kScatterLeft / 2, 48, titles.y);

  const std::vector<bool> frontier = OnFrontier(points);
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return points[a].x < points[b].x; });
  std::string path;
  for (const size_t i : order) {
    if (!frontier[i]) continue;
    path += (path.empty() ? "M" : "L") + At(across.Place(points[i].x)) + " " +
            At(up.Place(points[i].y));
  }
  if (!points.front().series.empty()) {
    return svg + SeriesOf(points, order, across, up, path) + "</svg>\n";
  }
  std::string labels;
  std::vector<LabelPlace> taken;
  for (const size_t i : order) {
    const double x = across.Place(points[i].x), y = up.Place(points[i].y);
    labels += std::string("<circle class=\"") + (frontier[i] ? "point" : "other") + "\" cx=\"" +
              At(x) + "\" cy=\"" + At(y) + "\" r=\"5\"/>\n";
    const std::string label = Shortened(points[i].label, kScatterLabelLetters);
    taken.push_back(PlaceLabel(x, y, std::min(label.size(), kScatterLabelLetters), taken));
    labels += Words("label", taken.back().left, taken.back().middle + 4, label);
  }
  svg += "<path class=\"frontier\" d=\"" + path + "\"/>\n";
  return svg + labels + "</svg>\n";
}

}  // namespace kinglet
