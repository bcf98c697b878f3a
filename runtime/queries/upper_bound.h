// A bound of the probability of a cluster's tokens, computed without looking at the tokens.
#ifndef KINGLET_RUNTIME_QUERIES_UPPER_BOUND_H_
#define KINGLET_RUNTIME_QUERIES_UPPER_BOUND_H_

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/queries/distribution.h"

namespace kinglet {

// The bound, rounded up twice. A test shows that the operations of a log-probability are monotone
// in float; those of the C library in double are so only nearly.
template <class T>
T Outward(T bound) {
  return std::nextafter(std::nextafter(bound, std::numeric_limits<T>::infinity()),
                        std::numeric_limits<T>::infinity());
}

// An upper bound of log p, with the cache mixed in, of tokens whose softmax log p is at most
// `log_probability` and whose weight in the cache is at most `weight`.
template <class T>
T UpperBound(Distribution<T>& distribution, T log_probability, T weight) {
  const NeuralCacheMix<T>& cache = distribution.cache();
  const T bound = std::max(cache.MixedLogProbability(log_probability, T{0}),
                           cache.MixedLogProbability(log_probability, weight));
  // Counted: the two differences of log_probability, the mixture for a token outside the cache and,
  // if the weight is not 0, for one inside, the comparison of these two and that with the k-th
  // best.
  const double mixed = weight > T{0} ? 1 : 0;
  distribution.work().arithmetic +=
      {2 * mixed, 2 + (cache.is_in_model() ? 1 : 0) + mixed, 4 * mixed + 1};
  return Outward(bound);
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_UPPER_BOUND_H_
