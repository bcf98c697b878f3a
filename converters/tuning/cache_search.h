// The local search for a neural cache's two numbers: a pure function of what it searches.
#ifndef KINGLET_CONVERTERS_TUNING_CACHE_SEARCH_H_
#define KINGLET_CONVERTERS_TUNING_CACHE_SEARCH_H_

#include <functional>
#include <vector>

namespace kinglet {

struct CacheParameters {
  double lambda;  // in (0, 1)
  double theta;   // > 0

  bool operator==(const CacheParameters&) const = default;
};

// Where the published search starts if the model has no numbers of its own.
inline constexpr CacheParameters kPublishedStart = {0.1, 0.016};

// What is to be small: the mean negative log-probability of a text. NaN and infinity are allowed
// and never chosen.
using CacheObjective = std::function<double(const CacheParameters&)>;

struct SearchedPoint {
  CacheParameters parameters;
  double loss;
  bool accepted;  // it was better than all before it; the start always is
};

struct CacheSearch {
  std::vector<SearchedPoint> path;  // every evaluated point, in order; the first is the start
  CacheParameters best;             // the last accepted point
  double loss;                      // its
};

// Coordinate descent as published with MicroNet (Yan et al. 2020, appendix F, and the cache search
// of its code). Rounds of two turns, lambda's and then theta's: the points one step below and above
// are evaluated and the better one is accepted if it is strictly better than the best so far. A
// step begins as 1/20 of its number, grows by 1.2 when its turn succeeds and is halved when it
// fails. The search ends when both steps are below 1/200 of their numbers, or after 200 rounds,
// which only an objective without a minimum takes. Beyond the publication: points outside the range
// of CacheParameters are not evaluated. Equal losses: the lower point. Deterministic.
// REQUIRES: start is in that range.
CacheSearch SearchCache(const CacheParameters& start, const CacheObjective& objective);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_CACHE_SEARCH_H_
