#include "converters/tuning/cache_search.h"

#include <cmath>
#include <cstddef>
#include <optional>

namespace kinglet {
namespace {

// Intervals as fractions of their parameter.
constexpr double kFirstInterval = 1.0 / 20;
constexpr double kSmallInterval = 1.0 / 200;
constexpr double kGrowth = 1.2, kShrinkage = 0.5;
constexpr int kMaxRounds = 200;

bool InRange(const CacheParameters& point) {
  return point.lambda > 0 && point.lambda < 1 && point.theta > 0 && std::isfinite(point.theta);
}

// One of the two parameters with its interval.
struct Coordinate {
  double CacheParameters::*number;
  double interval;

  bool Small(const CacheParameters& at) const { return interval < kSmallInterval * (at.*number); }
};

void TakeTurn(Coordinate& coordinate, const CacheObjective& objective, CacheSearch& search) {
  const CacheParameters centre = search.best;
  std::optional<size_t> better;  // index of the better neighbour in the path
  for (const double change : {-coordinate.interval, coordinate.interval}) {
    CacheParameters neighbour = centre;
    neighbour.*coordinate.number += change;
    if (!InRange(neighbour)) continue;
    const double loss = objective(neighbour);
    if (loss < search.loss) {
      better = search.path.size();
      search.loss = loss;
      search.best = neighbour;
    }
    search.path.push_back({neighbour, loss, false});
  }
  if (better) search.path[*better].accepted = true;
  coordinate.interval *= better ? kGrowth : kShrinkage;
}

}  // namespace

CacheSearch SearchCache(const CacheParameters& start, const CacheObjective& objective) {
  CacheSearch search;
  search.best = start;
  search.loss = objective(start);
  search.path.push_back({start, search.loss, true});
  Coordinate lambda{&CacheParameters::lambda, start.lambda * kFirstInterval};
  Coordinate theta{&CacheParameters::theta, start.theta * kFirstInterval};
  for (int round = 0; round < kMaxRounds; ++round) {
    TakeTurn(lambda, objective, search);
    TakeTurn(theta, objective, search);
    if (lambda.Small(search.best) && theta.Small(search.best)) break;
  }
  return search;
}

}  // namespace kinglet
