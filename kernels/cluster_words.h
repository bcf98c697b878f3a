// From the logits of an open cluster to its words' log-probabilities: rule 5 of docs/NUMERICS.md,
// the inner loops of runtime/distribution. Not steps of the plan, since they write to the caller's
// memory or to none.
#ifndef KINGLET_KERNELS_CLUSTER_WORDS_H_
#define KINGLET_KERNELS_CLUSTER_WORDS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/functions.h"

namespace kinglet {

// What turns a logit into a log-probability: ((logit - largest) - log_sum), at most 0, + parent,
// + keep.
template <class T>
struct ClusterTerms {
  T largest, log_sum;  // of the cluster's logits: max, log sum exp(x - max)
  T parent;            // log p of the cluster itself; 0 for the head
  T keep;              // what a neural cache leaves to words it does not hold; -0, which changes
                       // nothing, where none is mixed in
};

// No word of a smaller logit is as probable as the threshold. Each of the four operations that make
// a log-probability of a logit is off by at most 2^-24 of numbers no larger than those added up
// here, as are those that make the logit of the threshold, and none of them is decreasing. Minus
// infinity where nothing can be said.
template <class T>
T LeastLogit(const ClusterTerms<T>& terms, T threshold) {
  const T logit = threshold - terms.keep - terms.parent + terms.log_sum + terms.largest;
  const T sizes = std::abs(threshold) + std::abs(terms.keep) + std::abs(terms.parent) +
                  std::abs(terms.log_sum) + std::abs(terms.largest) + std::abs(logit);
  const T least = logit - (sizes * T(0x1p-19) + std::numeric_limits<T>::min());
  return std::isfinite(least) ? least : -std::numeric_limits<T>::infinity();
}

// No word of a block of logits whose exp(x - max) sum up to less than this is as probable as the
// threshold: a sum of numbers that are not negative, however rounded, is at least the largest of
// them, and exp's own error is far below a hundredth where it is a normal number. 0 where nothing
// can be said.
template <class T>
T LeastBlockSum(const ClusterTerms<T>& terms, T threshold) {
  const T sum = Exp(LeastLogit(terms, threshold) - terms.largest) * T(0.99);
  return sum > T(1e-30) ? sum : T{0};
}

// What mixes a neural cache into the words it holds: log(keep * exp(log p) + lambda * (weight /
// total)), keep = 1 - lambda.
template <class T>
struct CacheTerms {
  T keep, lambda;
  T total;  // sum of the weights of all stored pairs, > 0
};

// A backend's way to do it; all give the same bits. Logits are finite.
template <class T>
struct ClusterFunctions {
  // out[i] = log p of word i.
  void (*log_probabilities)(const T* logits, size_t n, const ClusterTerms<T>& terms, T* out);
  // The i with log p >= threshold, ascending, to `places`, which has room for n + 16; returns their
  // number.
  size_t (*at_least)(const T* logits, size_t n, const ClusterTerms<T>& terms, T threshold,
                     uint32_t* places);
  // log_probabilities[i], of a word whose weight in the cache is weights[i] > 0, becomes the mixed
  // one.
  void (*mix)(const T* weights, size_t n, const CacheTerms<T>& terms, T* log_probabilities);
  // out[i] = exp(x[i]); out may be x.
  void (*exponentials)(const T* x, size_t n, T* out);
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_CLUSTER_WORDS_H_
