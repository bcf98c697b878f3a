// The loss of a model against the fraction of a tensor's entries that are zero, and the rule of the
// MicroNet paper (Yan et al. 2020, section 4.2) for the sparsities of all tensors: each tensor gets
// the largest sparsity at which its loss is below a threshold common to all tensors.
#ifndef KINGLET_CONVERTERS_PLANNING_LOSS_CURVE_H_
#define KINGLET_CONVERTERS_PLANNING_LOSS_CURVE_H_

#include <optional>
#include <span>
#include <vector>

namespace kinglet {

struct CurvePoint {
  double at = 0;
  double loss = 0;  // above the unchanged model's
};

// A curve that never falls, straight between its points. The first point has loss 0.
class LossCurve {
 public:
  // Takes measured points in any order. `start`: the unchanged tensor's sparsity. Points that would
  // make the curve fall are replaced by their means (pool adjacent violators), losses below 0 by 0,
  // and points at or before the start are omitted.
  LossCurve(double start, std::vector<CurvePoint> measured);

  std::span<const CurvePoint> points() const { return points_; }
  double last() const { return points_.back().at; }
  double LossAt(double at) const;       // outside the points, that of the nearest
  double LargestAt(double loss) const;  // the largest `at` with LossAt <= loss; loss >= 0

 private:
  std::vector<CurvePoint> points_;
};

// Replaces the values by the nearest ones that never fall (least squares, equal weights).
void NeverFalling(std::vector<double>& values);

struct Threshold {
  double loss = 0;
  std::vector<double> at;  // of each curve
  double mean = 0;         // of `at`, by the weights
};
// The least threshold at which the mean of LargestAt is at least `wanted`, by bisection to the last
// bit. Returns nullopt if no threshold reaches it. REQUIRES: weights above 0, one for each curve; a
// curve.
std::optional<Threshold> FindThreshold(std::span<const LossCurve> curves,
                                       std::span<const double> weights, double wanted);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_LOSS_CURVE_H_
