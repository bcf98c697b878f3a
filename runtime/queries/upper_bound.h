// How probable a word of a cluster can be, as far as is known without looking at its words.
#ifndef KINGLET_RUNTIME_QUERIES_UPPER_BOUND_H_
#define KINGLET_RUNTIME_QUERIES_UPPER_BOUND_H_

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/queries/distribution.h"

namespace kinglet {

// Rounded outward: a test shows that the operations that make a log-probability are monotone in
// float; those of the C library in double are so only nearly.
template <class T>
T Outward(T bound) {
  return std::nextafter(std::nextafter(bound, std::numeric_limits<T>::infinity()),
                        std::numeric_limits<T>::infinity());
}

// An upper bound of log p, cache included, of words whose softmax log p and whose weight in the
// cache are at most these.
template <class T>
T UpperBound(Distribution<T>& distribution, T log_probability, T weight) {
  const NeuralCacheMix<T>& cache = distribution.cache();
  const T bound = std::max(cache.MixedLogProbability(log_probability, T{0}),
                           cache.MixedLogProbability(log_probability, weight));
  // The two differences that made log_probability; the mixture for the best word outside the cache
  // and, if the cache holds any, inside; the comparison of these two and with the k-th best.
  const double mixed = weight > T{0} ? 1 : 0;
  distribution.work().arithmetic +=
      {2 * mixed, 2 + (cache.is_in_model() ? 1 : 0) + mixed, 4 * mixed + 1};
  return Outward(bound);
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_UPPER_BOUND_H_
