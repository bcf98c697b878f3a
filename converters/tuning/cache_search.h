// The local search for the two parameters of a neural cache, lambda and theta. Deterministic.
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

// The start of the published search; used for a model that has no cache.
inline constexpr CacheParameters kPublishedStart = {0.1, 0.016};

// The function to minimise: the mean negative log-probability of a text. Points where the function
// returns NaN or infinity are never chosen.
using CacheObjective = std::function<double(const CacheParameters&)>;

struct SearchedPoint {
  CacheParameters parameters;
  double loss;
  bool accepted;  // became the best point so far; true for the start
};

struct CacheSearch {
  std::vector<SearchedPoint> path;  // every evaluated point, in order; the first is the start
  CacheParameters best;             // the last accepted point
  double loss;                      // of `best`
};

// Coordinate descent as published with MicroNet (Yan et al. 2020, appendix F, and the cache search
// of its code). Each round has a turn for lambda and a turn for theta. A turn evaluates the points
// at one interval below and above the best point, and accepts the better of the two if it is
// strictly better than the best point; of equal losses, the lower point. An interval begins as 1/20
// of its parameter, grows by 1.2 after a turn that succeeds and is halved after a turn that fails.
// The search ends when both intervals are below 1/200 of their parameters, or after 200 rounds,
// which only an objective without a minimum takes. Unlike the published search, SearchCache does
// not evaluate points outside the range of CacheParameters. REQUIRES: start is in that range.
CacheSearch SearchCache(const CacheParameters& start, const CacheObjective& objective);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_CACHE_SEARCH_H_
