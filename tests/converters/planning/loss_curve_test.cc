#include "converters/planning/loss_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace kinglet::loss_curve_test {
namespace {

std::vector<CurvePoint> Points(const LossCurve& curve) {
  return {curve.points().begin(), curve.points().end()};
}

TEST(LossCurve, NeverFallsAndBeginsAtTheUnchangedTensor) {
  const LossCurve curve(0.2, {{0.6, 0.3}, {0.1, 9}, {0.4, 0.2}, {0.5, 0.1}, {0.2, 5}});
  const std::vector<CurvePoint> points = Points(curve);
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[0].at, 0.2);
  EXPECT_EQ(points[0].loss, 0);
  EXPECT_NEAR(points[1].loss, 0.15, 1e-15);  // the mean of 0.2 and 0.1
  EXPECT_NEAR(points[2].loss, 0.15, 1e-15);
  EXPECT_EQ(points[3].loss, 0.3);
  EXPECT_NEAR(curve.LossAt(0.3), 0.075, 1e-15);
  EXPECT_EQ(curve.LossAt(0), 0);
  EXPECT_EQ(curve.LossAt(1), 0.3);
  EXPECT_NEAR(curve.LargestAt(0.15 + 1e-12), 0.5, 1e-9);
  EXPECT_EQ(curve.LargestAt(7), 0.6);
}

TEST(LossCurve, OfNoPointsOrOfGainsCostsNothing) {
  EXPECT_EQ(LossCurve(0.3, {}).LargestAt(1), 0.3);
  const LossCurve gains(0, {{0.5, -0.1}, {0.7, -0.2}});
  EXPECT_EQ(gains.LossAt(0.6), 0);
  EXPECT_EQ(gains.LargestAt(0), 0.7);
}

TEST(NeverFalling, IsTheNearest) {
  std::vector<double> empty;
  NeverFalling(empty);
  EXPECT_TRUE(empty.empty());
  std::vector<double> falling = {3, 2, 1};
  NeverFalling(falling);
  EXPECT_EQ(falling, (std::vector<double>{2, 2, 2}));
}

// The least threshold without bisection: between two neighbouring losses of any points, every
// curve's sparsity is linear in the threshold, so the crossing is one division.
struct Exact {
  double loss;
  std::vector<double> at;
};
double ExactAt(const std::vector<CurvePoint>& points, double loss) {
  double largest = points[0].at;
  for (size_t i = 1; i < points.size(); ++i) {
    const CurvePoint &a = points[i - 1], &b = points[i];
    if (b.loss <= loss) {
      largest = b.at;
    } else if (a.loss <= loss) {
      largest = a.at + (b.at - a.at) * ((loss - a.loss) / (b.loss - a.loss));
    }
  }
  return largest;
}
double ExactMean(const std::vector<std::vector<CurvePoint>>& curves,
                 const std::vector<double>& weights, double loss) {
  double sum = 0, weight = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    sum += weights[i] * ExactAt(curves[i], loss);
    weight += weights[i];
  }
  return sum / weight;
}
double ExactThreshold(const std::vector<std::vector<CurvePoint>>& curves,
                      const std::vector<double>& weights, double wanted) {
  std::vector<double> losses = {0};
  for (const auto& curve : curves) {
    for (const CurvePoint& point : curve) losses.push_back(point.loss);
  }
  std::sort(losses.begin(), losses.end());
  for (size_t i = 0; i < losses.size(); ++i) {
    const double mean = ExactMean(curves, weights, losses[i]);
    if (mean < wanted) continue;
    if (i == 0) return losses[0];
    // Just below this loss: flat parts that end at it are not yet reached.
    const double below = ExactMean(curves, weights, losses[i - 1]);
    const double middle = losses[i - 1] + (losses[i] - losses[i - 1]) / 2;
    const double slope = 2 * (ExactMean(curves, weights, middle) - below);
    if (below + slope < wanted) return losses[i];
    return losses[i - 1] + (losses[i] - losses[i - 1]) * (wanted - below) / slope;
  }
  return INFINITY;
}

TEST(FindThreshold, EqualsAnotherProgramOnAThousandSetsOfCurves) {
  std::mt19937_64 random(20201);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  int unreachable = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<LossCurve> curves;
    std::vector<std::vector<CurvePoint>> points;
    std::vector<double> weights;
    const int count = std::uniform_int_distribution<int>(1, 12)(random);
    for (int c = 0; c < count; ++c) {
      const double start = uniform(0, 0.4);
      std::vector<CurvePoint> curve = {{start, 0}};
      const int steps = std::uniform_int_distribution<int>(1, 7)(random);
      for (int s = 0; s < steps; ++s) {
        const double rise = uniform(0, 1) < 0.2 ? 0 : std::exp(uniform(-12, 0));
        curve.push_back({curve.back().at + uniform(0.001, 0.08), curve.back().loss + rise});
      }
      points.push_back(curve);
      curves.emplace_back(start, curve);
      weights.push_back(std::exp(uniform(0, 12)));
    }
    const double wanted = uniform(0, 0.9);
    const auto found = FindThreshold(curves, weights, wanted);
    const double exact = ExactThreshold(points, weights, wanted);
    ASSERT_EQ(found.has_value(), std::isfinite(exact)) << round;
    unreachable += found ? 0 : 1;
    if (!found) continue;
    EXPECT_GE(found->mean, wanted);
    EXPECT_NEAR(found->loss, exact, 1e-9 * (1 + exact)) << round;
    for (int c = 0; c < count; ++c) {
      EXPECT_NEAR(found->at[c], ExactAt(points[c], found->loss), 1e-9) << round;
    }
  }
  EXPECT_GT(unreachable, 50);
  EXPECT_LT(unreachable, 950);
}

}  // namespace
}  // namespace kinglet::loss_curve_test
