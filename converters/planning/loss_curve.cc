#include "converters/planning/loss_curve.h"

#include <algorithm>

namespace kinglet {
namespace {

Threshold AtThreshold(std::span<const LossCurve> curves, std::span<const double> weights,
                      double loss) {
  Threshold threshold;
  threshold.loss = loss;
  double sum = 0, weight = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    threshold.at.push_back(curves[i].LargestAt(loss));
    sum += weights[i] * threshold.at.back();
    weight += weights[i];
  }
  threshold.mean = sum / weight;
  return threshold;
}

}  // namespace

void NeverFalling(std::vector<double>& values) {
  struct Pool {
    double sum;
    size_t count;
    double Mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> blocks;
  for (const double value : values) {
    blocks.push_back({value, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].Mean() >= blocks.back().Mean()) {
      const Pool last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().count += last.count;
    }
  }
  size_t at = 0;
  for (const Pool& block : blocks) {
    for (size_t i = 0; i < block.count; ++i) values[at++] = block.Mean();
  }
}

LossCurve::LossCurve(double start, std::vector<CurvePoint> measured) {
  std::sort(measured.begin(), measured.end(),
            [](const CurvePoint& a, const CurvePoint& b) { return a.at < b.at; });
  std::erase_if(measured, [start](const CurvePoint& point) { return point.at <= start; });
  std::vector<double> losses;
  for (const CurvePoint& point : measured) losses.push_back(point.loss);
  NeverFalling(losses);
  points_.push_back({start, 0});
  for (size_t i = 0; i < measured.size(); ++i) {
    points_.push_back({measured[i].at, std::max(0.0, losses[i])});
  }
}

double LossCurve::LossAt(double at) const {
  const auto next =
      std::upper_bound(points_.begin(), points_.end(), at,
                       [](double x, const CurvePoint& point) { return x < point.at; });
  if (next == points_.begin()) return points_.front().loss;
  if (next == points_.end()) return points_.back().loss;
  const CurvePoint& before = *(next - 1);
  return before.loss + (next->loss - before.loss) * (at - before.at) / (next->at - before.at);
}

double LossCurve::LargestAt(double loss) const {
  const auto next =
      std::upper_bound(points_.begin(), points_.end(), loss,
                       [](double value, const CurvePoint& point) { return value < point.loss; });
  if (next == points_.begin()) return points_.front().at;
  if (next == points_.end()) return points_.back().at;
  const CurvePoint& before = *(next - 1);
  return before.at + (next->at - before.at) * (loss - before.loss) / (next->loss - before.loss);
}

std::optional<Threshold> FindThreshold(std::span<const LossCurve> curves,
                                       std::span<const double> weights, double wanted) {
  double low = 0, high = 0;
  for (const LossCurve& curve : curves) high = std::max(high, curve.points().back().loss);
  Threshold best = AtThreshold(curves, weights, high);
  if (best.mean < wanted) return std::nullopt;
  if (Threshold least = AtThreshold(curves, weights, low); least.mean >= wanted) return least;
  for (;;) {  // below the wanted mean at `low`, not at `high`
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return best;
    Threshold tried = AtThreshold(curves, weights, middle);
    if (tried.mean >= wanted) {
      high = middle;
      best = std::move(tried);
    } else {
      low = middle;
    }
  }
}

}  // namespace kinglet
